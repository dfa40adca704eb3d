// SPDX-License-Identifier: Apache-2.0
// Finding the cell of each window that equals its output. A window is scanned from its last cell to its first, and
// every match replaces the one before: what remains at the end is the first.
#pragma once

#include <utility>

#include "pool_common.hpp"
#include "pool_vector.hpp"

namespace VG_NAMESPACE::pool {

// What a cell is compared with. Plain types: equality.
template <class S>
struct Target {
    using T = lane<S>;
    vec<T> value;
    explicit Target(vec<T> y) : value(y) {}
    mask<T> match(vec<T> x) const { return equal<T>(x, value); }
};

// 16-bit floats: equal bits, but both zeros are one value (so the sign is dropped) and NaN matches nothing (so that all
// bits are dropped, and none of what remains is 1).
template <class S, int infinity>
struct HalfTarget {
    using T = uint16_t;
    vec<T> value, kept;
    explicit HalfTarget(vec<T> y) {
        const vec<T> size = y & all_lanes<T>(0x7fff);
        kept = choose<T>(equal<T>(size, vec<T>{}), all_lanes<T>(0x7fff), ~vec<T>{});
        const vec<T> above = size - all_lanes<T>(infinity + 1);  // wraps around unless NaN
        const mask<T> nan = equal<T>(above & all_lanes<T>(0x8000), vec<T>{});
        kept = choose<T>(nan, vec<T>{}, kept);
        value = choose<T>(nan, all_lanes<T>(1), y & kept);
    }
    mask<T> match(vec<T> x) const { return equal<T>(x & kept, value); }
};
template <>
struct Target<f16> : HalfTarget<f16, 0x7c00> {
    using HalfTarget::HalfTarget;
};
template <>
struct Target<bf16> : HalfTarget<bf16, 0x7f80> {
    using HalfTarget::HalfTarget;
};

template <class S>
inline S no_number() {
    if constexpr (is_half<S>) return S{0x7fff};
    return std::numeric_limits<S>::quiet_NaN();  // 0 for integers, which never need it
}

// step(i, count, part): `count` vectors from element i on. Several at a time hide the latency of the comparisons.
template <int n>
using number = std::integral_constant<int, n>;
template <int lane_count, int most = 4, class Step>
inline __attribute__((always_inline)) void each_group(int64_t length, Step &&step) {
    int64_t i = 0;
    if constexpr (most >= 4)
        for (; i + 4 * lane_count <= length; i += 4 * lane_count) step(i, number<4>{}, All{});
    if constexpr (most >= 2)
        if (i + 2 * lane_count <= length) {
            step(i, number<2>{}, All{});
            i += 2 * lane_count;
        }
    for (; i + lane_count <= length; i += lane_count) step(i, number<1>{}, All{});
    if (i < length) step(i, number<1>{}, Some{static_cast<int>(length - i)});
}

// Elements of a run of windows or cells side by side, on the other side of a step: where element i of the run lies
// there, if the run's cells are `jump` elements further apart. Vectors must not cross from cell to cell.
struct Stride {
    uint32_t channels = 1;
    int64_t jump = 0;
    int64_t at(int64_t i) const { return jump ? i + static_cast<uint32_t>(i) / channels * jump : i; }
};

// The volume as windows see it.
struct Volume {
    Reach D, H, W;
    int64_t C;
    Comb comb;
    bool flat, asks, together;
    Range inner{0, 0};  // windows that lie wholly inside along the width, if they are at equal steps

    Volume(const vg_pool *p, int lane_count)
        : D(cells_of(p->axis[0])), H(cells_of(p->axis[1])), W(cells_of(p->axis[2])), C(p->channels),
          comb(comb_of(p->axis[2])), flat(takes_flat(p, comb, lane_count)),
          asks(takes(p->how, Path::asks, true, D.longest() * H.longest() <= 2 && asks_ahead(p, 2))) {
        if (comb.taps) inner = comb.inside(W.cells, W.count);
        const bool fits = inner.size() > 0 && inner_run() < INT32_MAX;
        together = takes(p->how, Path::together, fits && (flat || C % lane_count == 0));
    }
    int64_t cell(int64_t n, int64_t d, int64_t h, int64_t w) const {
        return (((n * D.cells + d) * H.cells + h) * W.cells + w) * C;
    }
    int64_t window(int64_t n, int64_t d, int64_t h, int64_t w) const {
        return (((n * D.count + d) * H.count + h) * W.count + w) * C;
    }
    // Elements of the inner run: in a flat row all starts from the first to the last, else the windows themselves.
    int64_t inner_run() const {
        if (inner.size() <= 0) return 0;
        return flat ? ((inner.size() - 1) * comb.step + 1) * C : inner.size() * C;
    }
    // Whether vectors run over inner windows without regard to cells.
    bool runs(Range channel) const { return together && (flat || channel.size() == C); }
    Stride stride() const {
        return flat ? Stride{} : Stride{static_cast<uint32_t>(C), (comb.step - 1) * C};
    }
};

// The cells of a window, or of many windows side by side.
struct Taps {
    int64_t first;              // element offset of the first cell
    int64_t plane, line, cell;  // element strides
    int64_t d, h, w;            // cells along each axis
    Stride stride;              // from the windows to their first cells
    int64_t ahead = 0;          // elements to the cells that the next row of windows wants, if it should be asked for

    template <class Visit>
    inline __attribute__((always_inline)) void backwards(Visit &&visit) const {
        int64_t row = d * h;
        for (int64_t i = d - 1; i >= 0; --i)
            for (int64_t j = h - 1; j >= 0; --j) {
                int64_t at = first + i * plane + j * line + (w - 1) * cell;
                int64_t code = row-- * w - 1;
                for (int64_t k = w; k > 0; --k, at -= cell, --code) visit(at, code);
            }
    }
};

// run(taps, ow, length, many): a row of windows from `ow` on: one window, or all inner ones together. The caller works with
// the vectors that the volume was made for.
template <class Run>
inline void each_run(const Volume &v, int64_t n, int64_t od, int64_t oh, Range channel, Run &&run) {
    const Range rd = v.D.at(od), rh = v.H.at(oh);
    const int64_t line = v.W.cells * v.C;
    const int64_t ahead = v.asks && oh + 1 < v.H.count ? (v.H.at(oh + 1).lo - rh.lo) * line : 0;
    const auto taps = [&](Range w, Stride stride) {
        return Taps{v.cell(n, rd.lo, rh.lo, w.lo) + channel.lo, v.H.cells * line, line, v.C,
                    rd.size(), rh.size(), w.size(), stride, ahead};
    };
    for (int64_t ow = 0; ow < v.W.count; ++ow) {
        if (v.inner.size() > 0 && ow == v.inner.lo) {
            const int64_t start = v.comb.at(ow);
            Taps inner = taps({start, start + v.comb.taps}, v.stride());
            if (v.runs(channel)) {
                run(inner, ow, v.inner_run(), true);
            } else {
                inner.stride = {};
                for (; ow < v.inner.hi; ++ow, inner.first += v.comb.step * v.C) run(inner, ow, channel.size(), false);
            }
            ow = v.inner.hi - 1;
        } else {
            const Range w = v.W.at(ow);
            run(taps(w, {}), ow, channel.size(), false);
        }
    }
}

// ---- the gradient of the gradient: the value of `grad` at the match ----

template <class S, bool asks = false>
void values_at_match(const Taps &taps, const S *x, const S *y, const S *grad, S *out, int64_t length,
                     bool past = false) {
    using T = lane<S>;
    constexpr int L = lanes<T>;
    each_group<L>(length, [&](int64_t i, auto count, auto part) {
        constexpr int n = decltype(count)::value;
        [&]<int... v>(std::integer_sequence<int, v...>) {
            const Target<S> target[n] = {Target<S>(get_raw(y + i + v * L, part))...};
            const int64_t from[n] = {taps.stride.at(i + v * L)...};
            vec<T> found[n] = {};
            taps.backwards([&](int64_t at, int64_t) {
                if constexpr (asks)
                    ((ask(x + at + from[v] + taps.ahead), ask(grad + at + from[v] + taps.ahead)), ...);
                ((found[v] = choose<T>(target[v].match(get_raw(x + at + from[v], part)),
                                       get_raw(grad + at + from[v], part), found[v])),
                 ...);
            });
            if constexpr (__is_same(decltype(part), All))
                if (past) return (put_raw_past(out + i + v * L, found[v]), ...);
            (put_raw(out + i + v * L, found[v], part), ...);
        }(std::make_integer_sequence<int, n>{});
    });
}

// How the row-wise operations are cut: rows of outputs, some of a plane at a time.
struct RowPlan {
    Blocks blocks;
    int32_t threads;
    int64_t spaced;  // elements of a flat row
};
inline RowPlan plan_rows(const vg_pool *p, const Volume &v, int64_t bytes, int32_t threads) {
    const int64_t work = p->batch * v.D.cells * v.H.cells * v.W.cells * v.C;
    RowPlan plan{{p->batch, v.D.count, v.H.count, 1, at_least_one(v.D.count), at_least_one(v.H.count), 1},
                 useful_threads(p, work, threads), v.flat ? (v.inner_run() + 63) / 64 * 64 : 0};
    const int64_t rows = v.D.longest() * pieces(v.H.cells, at_least_one(v.H.count));
    plan.blocks.limit_heights((1 << 19) / static_cast<double>(at_least_one(rows * v.W.cells * v.C * bytes)));
    plan.blocks.refine(p->how, plan.threads > 1 ? plan.threads * 8 : 1, true);
    return plan;
}

template <class S>
int32_t grad_grad_of(const vg_pool *p, const S *x, const S *y, const S *grad, S *out, const vg_run *run) {
    constexpr int L = lanes<lane<S>>;
    const Volume v(p, L);
    const RowPlan plan = plan_rows(p, v, 2 * sizeof(S), run->threads);
    const int64_t size = sizeof(S), windows = windows_in(p) * size;
    const bool past = writes_past(p->how, out, windows, v.C * size, 2 * (windows + cells_in(p) * size));
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int worker) {
        S *spaced_y = static_cast<S *>(run->scratch) + worker * 2 * plan.spaced, *spaced_out = spaced_y + plan.spaced;
        std::fill_n(spaced_y, plan.spaced, S{});
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od)
            for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run); ++oh) {
                const int64_t row = v.window(b.image, od, oh, 0);
                each_run(v, b.image, od, oh, {0, v.C}, [&](const Taps &taps, int64_t ow, int64_t length, bool many) {
                    const int64_t o = row + ow * v.C;
                    if (!many || !v.flat || v.comb.step == 1)
                        return taps.ahead ? values_at_match<S, true>(taps, x, y + o, grad, out + o, length, past)
                                          : values_at_match(taps, x, y + o, grad, out + o, length, past);
                    space_out(y + o, spaced_y, v.inner.size(), v.comb.step, v.C, S{});
                    values_at_match(taps, x, spaced_y, grad, spaced_out, length);
                    close_up(spaced_out, out + o, v.inner.size(), v.comb.step, v.C);
                });
            }
        if (past) settle();
    });
}

template <class S>
int64_t grad_grad_scratch_of(const vg_pool *p, int32_t threads) {
    const Volume v(p, lanes<lane<S>>);
    const RowPlan plan = plan_rows(p, v, 2 * sizeof(S), threads);
    return 2 * plan.spaced * static_cast<int64_t>(sizeof(S)) * plan.threads;
}

}  // namespace VG_NAMESPACE::pool
