// SPDX-License-Identifier: Apache-2.0
// Max pooling, its gradient and the gradient of that.
#pragma once

#include "pool_match.hpp"
#include "pool_max_grad.hpp"
#include "pool_reduce.hpp"

namespace VG_NAMESPACE::pool {

inline int64_t max_pool_scratch(const vg_pool *p, int32_t threads) { return reduce_scratch<Largest>(p, threads); }

inline int32_t max_pool(const vg_pool *p, const void *x, void *y, const vg_run *run) {
    return reduce<Largest>(p, x, y, run);
}

// body(MaxGrad type) for the rule and the size of codes that the problem asks for.
template <class S, class Body>
auto with_gather(const vg_pool *p, Body &&body) {
    if (p->near_ties) return body(Type<MaxGrad<S, ByNearness<S>>>{});
    const int64_t cells = cells_of(p->axis[0]).longest() * cells_of(p->axis[1]).longest() * cells_of(p->axis[2]).longest();
    if (cells <= 254) return body(Type<MaxGrad<S, ByCode<S, uint8_t>>>{});
    return body(Type<MaxGrad<S, ByCode<S, uint32_t>>>{});
}

template <class Gather>
int32_t gather(const vg_pool *p, const typename Gather::Arrays &arrays, const vg_run *run) {
    const GatherPlan plan = Gather::plan(p, arrays.keys != nullptr, run->threads);
    const Gather gather(plan, arrays, p->batch, run);
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int worker) {
        gather.block(b, static_cast<char *>(run->scratch) + worker * plan.bytes);
    });
}

inline int64_t max_pool_grad_scratch(const vg_pool *p, int32_t threads) {
    return with_float(p->dtype, [&](auto t) -> int64_t {
        using S = typename decltype(t)::type;
        if (by_tiles<S>(p)) return 0;
        return with_gather<S>(p, [&](auto gather_type) {
            const GatherPlan plan = decltype(gather_type)::type::plan(p, false, threads);
            return plan.bytes * plan.threads;
        });
    });
}

inline int32_t max_pool_grad(const vg_pool *p, const void *x, const void *y, const void *dy, void *dx,
                             const vg_run *run) {
    return with_float(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        const S *in = static_cast<const S *>(x), *out = static_cast<const S *>(y), *given = static_cast<const S *>(dy);
        if (by_tiles<S>(p)) return max_grad_of_tiles(p, in, out, given, static_cast<S *>(dx), run);
        return with_gather<S>(p, [&](auto gather_type) {
            return gather<typename decltype(gather_type)::type>(p, {in, out, nullptr, given, static_cast<S *>(dx)}, run);
        });
    });
}

inline int64_t max_pool_grad_grad_scratch(const vg_pool *p, int32_t threads) {
    return with_number(p->dtype, [&](auto t) -> int64_t {
        return grad_grad_scratch_of<typename decltype(t)::type>(p, threads);
    });
}

inline int32_t max_pool_grad_grad(const vg_pool *p, const void *x, const void *y, const void *grad, void *out,
                                  const vg_run *run) {
    return with_number(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        return grad_grad_of(p, static_cast<const S *>(x), static_cast<const S *>(y), static_cast<const S *>(grad),
                            static_cast<S *>(out), run);
    });
}

}  // namespace VG_NAMESPACE::pool
