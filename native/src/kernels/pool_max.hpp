// SPDX-License-Identifier: Apache-2.0
// Max pooling, its gradient and the gradient of that.
#pragma once

#include "pool_fold.hpp"
#include "pool_match.hpp"
#include "pool_near.hpp"
#include "pool_reduce.hpp"
#include "pool_scatter.hpp"
#include "pool_tiles.hpp"

namespace VG_NAMESPACE::pool {

inline int64_t max_pool_scratch(const vg_pool *p, int32_t threads) { return reduce_scratch<Largest>(p, threads); }

inline int32_t max_pool(const vg_pool *p, const void *x, void *y, const vg_run *run) {
    return reduce<Largest>(p, x, y, run);
}

// body(Scatter type) for the size of codes that the problem asks for.
template <class S, class Body>
auto with_scatter(const vg_pool *p, Body &&body) {
    const int64_t cells = cells_of(p->axis[0]).longest() * cells_of(p->axis[1]).longest() * cells_of(p->axis[2]).longest();
    if (takes(p->how, Path::byte_codes, cells <= 254)) return body(Type<Scatter<S, uint8_t>>{});
    return body(Type<Scatter<S, uint32_t>>{});
}

template <class How>
int32_t scatter(const vg_pool *p, const typename How::Arrays &arrays, const vg_run *run) {
    const ScatterPlan plan = How::plan(p, run->threads);
    const How how(p, plan, arrays, run);
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int worker) {
        how.block(b, static_cast<char *>(run->scratch) + worker * plan.bytes);
    });
}

// Not a choice: the result is another one.
inline bool is_near_wanted(const vg_pool *p) { return note(p->how, Path::near, p->near_ties, true, p->near_ties); }

inline int64_t max_pool_grad_scratch(const vg_pool *p, int32_t threads) {
    return with_float(p->dtype, [&](auto t) -> int64_t {
        using S = typename decltype(t)::type;
        if (is_near_wanted(p) || by_tiles<S>(p)) return 0;
        return with_scatter<S>(p, [&](auto how) {
            const ScatterPlan plan = decltype(how)::type::plan(p, threads);
            return plan.bytes * plan.threads;
        });
    });
}

template <class S>
int32_t max_pool_grad_of(const vg_pool *p, const S *x, const S *y, const S *dy, S *dx, const vg_run *run) {
    if (is_near_wanted(p)) {
        const NearGrad<S> near(p, x, y, dy, dx, run);
        return each_block(near.blocks(p), run->threads, run, [&](const Blocks::Block &b, int) { near.block(b); });
    }
    if (by_tiles<S>(p)) return max_grad_of_tiles(p, x, y, dy, dx, run);
    return with_scatter<S>(p, [&](auto how) {
        return scatter<typename decltype(how)::type>(p, {x, y, nullptr, dy, dx}, run);
    });
}

inline int32_t max_pool_grad(const vg_pool *p, const void *x, const void *y, const void *dy, void *dx,
                             const vg_run *run) {
    return with_float(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        return max_pool_grad_of(p, static_cast<const S *>(x), static_cast<const S *>(y), static_cast<const S *>(dy),
                                static_cast<S *>(dx), run);
    });
}

inline int64_t max_pool_grad_grad_scratch(const vg_pool *p, int32_t threads) {
    return with_number(p->dtype, [&](auto t) -> int64_t {
        using S = typename decltype(t)::type;
        return folds<S>(p) ? fold_scratch<S>(p, threads) : grad_grad_scratch_of<S>(p, threads);
    });
}

template <class S>
int32_t max_pool_grad_grad_of(const vg_pool *p, const S *x, const S *y, const S *grad, S *out, const vg_run *run) {
    if constexpr (!std::is_integral_v<S>)
        if (folds<S>(p)) return fold<S>(p, {x, y, grad, out}, run);
    return grad_grad_of(p, x, y, grad, out, run);
}

inline int32_t max_pool_grad_grad(const vg_pool *p, const void *x, const void *y, const void *grad, void *out,
                                  const vg_run *run) {
    return with_number(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        return max_pool_grad_grad_of(p, static_cast<const S *>(x), static_cast<const S *>(y),
                                     static_cast<const S *>(grad), static_cast<S *>(out), run);
    });
}

}  // namespace VG_NAMESPACE::pool
