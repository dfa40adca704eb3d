// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling as TensorFlow's CPU kernel has it: every cell closer than 1e-5 to the maximum of a window
// gets all of its gradient. Gathered: a cell looks at all the windows over it.
#pragma once

#include "pool_match.hpp"

namespace VG_NAMESPACE::pool {

// Where x is near y: difference and bound are rounded to the storage type, so that infinite and NaN maxima have nobody.
template <class S, class Part>
mask<sum_t<S>> is_near(vec<sum_t<S>> x, const S *y, Part part) {
    using A = sum_t<S>;
    vec<A> difference = x - get(y, part);
    S bound;
    narrow(static_cast<A>(1e-5), &bound);
    if constexpr (is_half<S>) {
        S rounded[lanes<A>];
        put(rounded, difference, All{});
        difference = get(rounded, All{});
    }
    difference = difference < vec<A>{} ? -difference : difference;
    return less<A>(difference, splat<A>(widen(bound)));
}

template <class S>
class NearGrad {
    using A = sum_t<S>;
    static constexpr int L = lanes<A>;

public:
    NearGrad(const vg_pool *p, const S *x, const S *y, const S *dy, S *dx, const vg_run *run)
        : v(p, L), D(windows_of(p->axis[0])), H(windows_of(p->axis[1])), W(windows_of(p->axis[2])), C(p->channels),
          x_(x), y_(y), dy_(dy), dx_(dx), run_(run) {}

    // One row of cells at a time.
    static Blocks blocks(const vg_pool *p) {
        return {p->batch, p->axis[0].size, p->axis[1].size, 1, 1, 1, 1};
    }
    void block(const Blocks::Block &b) const {
        const int64_t d = b.depth.lo, h = b.height.lo, row = v.cell(b.image, d, h, 0);
        const int64_t taps = v.comb.taps, step = v.comb.step;
        // Cells under inner windows only: those at the same place between two starts have the same windows.
        Range inner{v.inner.lo + (taps ? pieces(taps, step) - 1 : 0), v.inner.hi};
        while (inner.size() > 0 && v.comb.at(inner.hi) > W.count) --inner.hi;
        const bool together = v.runs({0, C}) && inner.size() > 0 && (!v.flat || step == 1);
        for (int64_t phase = 0; together && phase < step; ++phase) {
            const int64_t over = phase < taps ? (taps - phase - 1) / step + 1 : 0;
            gather(b, d, h, row + (v.comb.at(inner.lo) + phase) * C, inner.size() * C, v.stride(),
                   {inner.lo - over + 1, inner.lo + 1});
        }
        for (int64_t w = 0; w < W.count; ++w) {
            if (together && w == v.comb.at(inner.lo)) w = v.comb.at(inner.hi);
            if (w >= W.count) return;
            gather(b, d, h, row + w * C, C, {}, W.at(w));
        }
    }

private:
    // The gradient of a run of cells from element `at` on; `windows` are those over its first cell.
    void gather(const Blocks::Block &b, int64_t d, int64_t h, int64_t at, int64_t length, Stride stride,
                Range windows) const {
        const Range rd = D.at(d), rh = H.at(h);
        each_vector<L>(length, [&](int64_t i, auto part) {
            const int64_t to = at + stride.at(i);
            const vec<A> x = get(x_ + to, part);
            vec<A> sum{};
            for (int64_t od = rd.lo; od < rd.hi && !cancelled(run_); ++od)
                for (int64_t oh = rh.lo; oh < rh.hi; ++oh)
                    for (int64_t ow = windows.lo; ow < windows.hi; ++ow) {
                        const int64_t o = v.window(b.image, od, oh, ow) + i;
                        sum = add_where<A>(is_near(x, y_ + o, part), sum, get(dy_ + o, part));
                    }
            put(dx_ + to, sum, part);
        });
    }

    const Volume v;
    const Reach D, H, W;  // from cells to the windows over them
    const int64_t C;
    const S *x_, *y_, *dy_;
    S *dx_;
    const vg_run *run_;
};

}  // namespace VG_NAMESPACE::pool
