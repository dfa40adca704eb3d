// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling where no windows overlap: one pass over windows, cells and gradients.
#pragma once

#include "pool_match.hpp"

namespace VG_NAMESPACE::pool {

// The gradient of the cells of windows: the first match takes dy, all other cells get zero.
template <class S>
void first_match_takes(const Taps &taps, const S *x, const S *y, const S *dy, S *dx, int64_t length, bool past) {
    using T = lane<S>;
    constexpr int L = lanes<T>;
    each_group<L>(length, [&](int64_t i, auto group, auto part) {
        constexpr int n = decltype(group)::value;
        [&]<int... k>(std::integer_sequence<int, k...>) {
            const Target<S> goal[n] = {Target<S>(get_raw(y + i + k * L, part))...};
            const vec<T> gradient[n] = {get_raw(dy + i + k * L, part)...};
            const int64_t from[n] = {taps.stride.at(i + k * L)...};
            mask<T> open[n] = {(static_cast<void>(k), every_lane<T>())...};
            const auto cell = [&](int64_t at, auto one) {
                constexpr int q = decltype(one)::value;
                const mask<T> hit = both(open[q], goal[q].match(get_raw(x + at, part)));
                open[q] = without(open[q], hit);
                const vec<T> value = choose<T>(hit, gradient[q], vec<T>{});
                if constexpr (__is_same(decltype(part), All))
                    if (past) return put_raw_past(dx + at, value);
                put_raw(dx + at, value, part);
            };
            for (int64_t d = 0; d < taps.d; ++d)
                for (int64_t h = 0; h < taps.h; ++h)
                    for (int64_t w = 0; w < taps.w; ++w) {
                        const int64_t at = taps.first + d * taps.plane + h * taps.line + w * taps.cell;
                        (cell(at + from[k], number<k>{}), ...);
                    }
        }(std::make_integer_sequence<int, n>{});
    });
}

// The cells that belong to window o: its own and those before it that no window has; the last window takes the rest.
inline Range owned(const Reach &axis, int64_t o) {
    return {o == 0 ? 0 : axis.at(o - 1).hi, o + 1 == axis.count ? axis.cells : axis.at(o).hi};
}

// Zero for the cells that belong to windows (od, oh, all) but are in none.
template <class S>
void clear_gaps(const Volume &v, int64_t n, int64_t od, int64_t oh, S *dx) {
    const Range rd = v.D.at(od), rh = v.H.at(oh), ld = owned(v.D, od), lh = owned(v.H, oh);
    for (int64_t d = ld.lo; d < ld.hi; ++d)
        for (int64_t h = lh.lo; h < lh.hi; ++h) {
            S *row = dx + v.cell(n, d, h, 0);
            if (d < rd.lo || d >= rd.hi || h < rh.lo || h >= rh.hi) {
                std::fill_n(row, v.W.cells * v.C, S{});
                continue;
            }
            int64_t done = 0;
            for (int64_t ow = 0; ow < v.W.count; ++ow) {
                const Range rw = v.W.at(ow);
                if (rw.size() == 0) continue;
                if (rw.lo > done) std::fill_n(row + done * v.C, (rw.lo - done) * v.C, S{});
                done = rw.hi;
            }
            std::fill_n(row + done * v.C, (v.W.cells - done) * v.C, S{});
        }
}

template <class S>
int32_t max_grad_of_tiles(const vg_pool *p, const S *x, const S *y, const S *dy, S *dx, const vg_run *run) {
    constexpr int L = lanes<lane<S>>;
    const Volume v(p, L);
    const RowPlan plan = plan_rows(p, v, sizeof(S), run->threads);
    const int64_t size = sizeof(S), cells = cells_in(p) * size;
    const bool past = writes_past(p->how, dx, cells, v.C * size, 2 * (cells + windows_in(p) * size));
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int) {
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od)
            for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run); ++oh) {
                clear_gaps(v, b.image, od, oh, dx);
                each_run(v, b.image, od, oh, {0, v.C}, [&](const Taps &taps, int64_t ow, int64_t length, bool) {
                    const int64_t o = v.window(b.image, od, oh, ow);
                    first_match_takes(taps, x, y + o, dy + o, dx, length, past);
                });
            }
        if (past) settle();
    });
}

// Whether that way is open: windows on every axis, none of which overlap, and channels enough to run over.
template <class S>
bool by_tiles(const vg_pool *p) {
    bool apart = !p->near_ties;
    for (const vg_span &axis : p->axis) apart = apart && axis.out > 0 && windows_of(axis).longest() <= 1;
    return takes(p->how, Path::tiles, apart && !Volume(p, lanes<lane<S>>).flat);
}

}  // namespace VG_NAMESPACE::pool
