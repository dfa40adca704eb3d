// SPDX-License-Identifier: Apache-2.0
// Max pooling that keeps, as one byte each, where in its window the maximum was found, and the gradients that use it.
// A position counts the cells of the window that exist, in depth, height, width order; 255 is none (all cells NaN).
#pragma once

#include "pool_max.hpp"

namespace VG_NAMESPACE::pool {

inline constexpr uint8_t kNowhere = 255;

// Scanned backwards, "at least as large" leaves the first of equal maxima.
template <class S>
void largest_and_codes(const Taps &taps, const S *x, S *y, uint8_t *codes, int64_t length) {
    using A = sum_t<S>;
    using K = code_lane<A>;
    constexpr int L = lanes<A>;
    each_group<L>(length, [&](int64_t i, auto count, auto part) {
        constexpr int n = decltype(count)::value;
        [&]<int... v>(std::integer_sequence<int, v...>) {
            const int64_t from[n] = {taps.stride.at(i + v * L)...};
            vec<A> best[n] = {(static_cast<void>(v), splat<A>(-std::numeric_limits<A>::infinity()))...};
            vec<K> found[n] = {(static_cast<void>(v), ~vec<K>{})...};
            taps.backwards([&](int64_t at, int64_t code) {
                const vec<K> here = all_lanes<K>(static_cast<K>(code));
                const auto look = [&](vec<A> value, vec<A> &most, vec<K> &where) {
                    const mask<A> wins = at_least<A>(value, most);
                    most = choose<A>(wins, value, most);
                    where = choose<K>(wins, here, where);
                };
                (look(get(x + at + from[v], part), best[v], found[v]), ...);
            });
            (put(y + i + v * L, best[v], part), ...);
            (put_codes<A>(codes + i + v * L, found[v], part), ...);
        }(std::make_integer_sequence<int, n>{});
    });
}

template <class S>
int32_t max_positions_of(const vg_pool *p, const S *x, S *y, uint8_t *positions, const vg_run *run) {
    constexpr int L = lanes<sum_t<S>>;
    const Volume v(p, L);
    const RowPlan plan = plan_rows(p, v, sizeof(S), run->threads);
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int worker) {
        char *scratch = static_cast<char *>(run->scratch) + worker * plan.spaced * static_cast<int64_t>(sizeof(S) + 1);
        S *spaced = reinterpret_cast<S *>(scratch);
        uint8_t *spaced_codes = reinterpret_cast<uint8_t *>(spaced + plan.spaced);
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od)
            for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run); ++oh) {
                const int64_t row = v.window(b.image, od, oh, 0);
                each_run(v, b.image, od, oh, {0, v.C}, [&](const Taps &taps, int64_t ow, int64_t length, bool many) {
                    const int64_t o = row + ow * v.C;
                    if (!many || !v.flat || v.comb.step == 1)
                        return largest_and_codes(taps, x, y + o, positions + o, length);
                    largest_and_codes(taps, x, spaced, spaced_codes, length);
                    close_up(spaced, y + o, v.inner.size(), v.comb.step, v.C);
                    close_up(spaced_codes, positions + o, v.inner.size(), v.comb.step, v.C);
                });
            }
    });
}

inline int64_t max_pool_positions_scratch(const vg_pool *p, int32_t threads) {
    return with_float(p->dtype, [&](auto t) -> int64_t {
        using S = typename decltype(t)::type;
        const RowPlan plan = plan_rows(p, Volume(p, lanes<sum_t<S>>), sizeof(S), threads);
        return plan.spaced * static_cast<int64_t>(sizeof(S) + 1) * plan.threads;
    });
}
inline int32_t max_pool_positions(const vg_pool *p, const void *x, void *y, uint8_t *positions, const vg_run *run) {
    return with_float(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        return max_positions_of(p, static_cast<const S *>(x), static_cast<S *>(y), positions, run);
    });
}

inline int64_t max_pool_grad_positions_scratch(const vg_pool *p, int32_t threads) {
    return with_float(p->dtype, [&](auto t) -> int64_t {
        const ScatterPlan plan = Scatter<typename decltype(t)::type, uint8_t>::plan(p, threads);
        return plan.bytes * plan.threads;
    });
}
inline int32_t max_pool_grad_positions(const vg_pool *p, const uint8_t *positions, const void *dy, void *dx,
                                       const vg_run *run) {
    return with_float(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        return scatter<Scatter<S, uint8_t>>(
            p, {nullptr, nullptr, positions, static_cast<const S *>(dy), static_cast<S *>(dx)}, run);
    });
}

// From the position in a window of d x h x w cells to the element offset from its first cell.
inline void offsets_of(const Volume &v, int64_t d, int64_t h, int64_t w, int64_t *offset) {
    int64_t count = 0;
    for (int64_t i = 0; i < d; ++i)
        for (int64_t j = 0; j < h; ++j)
            for (int64_t k = 0; k < w && count < kNowhere; ++k)
                offset[count++] = ((i * v.H.cells + j) * v.W.cells + k) * v.C;
}

template <class T>
int32_t values_at_positions(const vg_pool *p, const uint8_t *positions, const T *grad, T *out, const vg_run *run) {
    const Volume v(p, 1);
    const RowPlan plan = plan_rows(p, v, sizeof(T), run->threads);
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int) {
        int64_t offset[kNowhere];
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od)
            for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run); ++oh) {
                const Range rd = v.D.at(od), rh = v.H.at(oh);
                int64_t width = -1;  // of the windows that `offset` is for
                for (int64_t ow = 0; ow < v.W.count; ++ow) {
                    const Range rw = v.W.at(ow);
                    if (rw.size() != width) offsets_of(v, rd.size(), rh.size(), width = rw.size(), offset);
                    const int64_t o = v.window(b.image, od, oh, ow);
                    const T *cell = grad + v.cell(b.image, rd.lo, rh.lo, rw.lo);
                    for (int64_t c = 0; c < v.C; ++c) {
                        const uint8_t at = positions[o + c];
                        out[o + c] = at == kNowhere ? T{} : cell[offset[at] + c];
                    }
                }
            }
    });
}

inline int64_t max_pool_grad_grad_positions_scratch(const vg_pool *, int32_t) { return 0; }
inline int32_t max_pool_grad_grad_positions(const vg_pool *p, const uint8_t *positions, const void *grad, void *out,
                                            const vg_run *run) {
    return with_number(p->dtype, [&](auto t) -> int32_t {
        using T = unsigned_of<sizeof(typename decltype(t)::type)>;  // copied, whatever it is
        return values_at_positions(p, positions, static_cast<const T *>(grad), static_cast<T *>(out), run);
    });
}

}  // namespace VG_NAMESPACE::pool
