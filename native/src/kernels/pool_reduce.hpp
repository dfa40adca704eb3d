// SPDX-License-Identifier: Apache-2.0
// One engine for average pooling, its gradient and max pooling (where pool_sweep.hpp is not for it): every output joins a
// box of source cells, axis by axis.
//
// Rows (width x channels, contiguous) are joined over depth and height first, element by element, whatever the number
// of channels; then the joined row over width. Where windows overlap in height, the rows joined over depth are kept in
// a small ring, so that each is made once. The order in which an output is summed depends on the problem alone, never
// on how it is cut into blocks.
#pragma once

#include "pool_sweep.hpp"

namespace VG_NAMESPACE::pool {

struct ReducePlan {
    bool ring;          // keep the rows joined over depth
    bool flat;          // take rows as one run (pool_common.hpp)
    Comb comb;          // of the windows along the width
    int64_t tile;       // outputs along the width at a time
    int64_t row;        // elements of a source row of such a tile, with margins
    int64_t out_row;    // elements of an output row of it
    int64_t ring_rows;
    int32_t threads;
    Blocks blocks;

    int64_t scratch_elements() const { return (ring ? ring_rows * row : 0) + row + (flat ? row + 2 * out_row : 0); }
};

inline constexpr int64_t kRowElements = 4096;    // a row of a tile: some of the first-level cache
inline constexpr int64_t kRingRows = 32;
inline constexpr int64_t kPlaneBytes = 1 << 18;  // the source rows under a block of heights: some of the second level

// Rows of the tiles: how many outputs fit, and the cells under them.
inline void plan_tiles(ReducePlan &plan, const vg_how &how, const Reach &W, int64_t channels, bool backward) {
    const double cells_per_output = static_cast<double>(W.cells) / static_cast<double>(at_least_one(W.count));
    const double per_output = std::max(cells_per_output, 1.0) * static_cast<double>(channels);
    const int64_t fitting = static_cast<int64_t>(kRowElements / std::max(per_output, 1.0));
    plan.tile = cut_to(how, std::clamp<int64_t>(fitting, 1, at_least_one(W.count)));
    int64_t cells = 0;
    for (int64_t o = 0; o < W.count; o += plan.tile)
        cells = std::max(cells, W.at(Range{o, std::min(W.count, o + plan.tile)}).size());
    if (plan.flat) {
        const int64_t span = backward ? plan.tile : (plan.tile - 1) * plan.comb.step;
        cells = std::max(cells, span + plan.comb.taps);
    }
    plan.row = (cells * channels + 31) / 16 * 16;
    plan.out_row = (plan.tile * channels + 31) / 16 * 16;
}

inline ReducePlan plan_reduce(const vg_pool *p, bool backward, int64_t bytes, int lane_count, int32_t threads) {
    const auto reach = backward ? windows_of : cells_of;
    const Reach D = reach(p->axis[0]), H = reach(p->axis[1]), W = reach(p->axis[2]);
    const int64_t C = p->channels, depth_taps = D.longest(), height_taps = H.longest();
    ReducePlan plan{};
    plan.comb = comb_of(p->axis[2]);
    plan.flat = takes_flat(p, plan.comb, lane_count);
    const int64_t channels = channels_of_block(p, plan.flat, 2048, 1024);
    plan.ring = takes(p->how, Path::ring, height_taps > 0,
                      depth_taps > 1 && height_taps <= kRingRows && H.overlap() > 1.2 &&
                          H.overlap() * static_cast<double>(depth_taps) > 4);
    plan.ring_rows = height_taps;
    plan_tiles(plan, p->how, W, channels, backward);

    const int64_t row_work = std::max(W.cells, W.count) * C;
    plan.threads = useful_threads(p, p->batch * D.count * H.count * row_work * at_least_one(depth_taps), threads);
    plan.blocks = {p->batch, D.count, H.count, C, at_least_one(D.count), at_least_one(H.count), at_least_one(channels)};
    const bool shared = takes(p->how, Path::shared, D.overlap() > 1, D.overlap() > 1.2);
    if (shared) {
        const double rows_per_output = static_cast<double>(H.cells) / static_cast<double>(at_least_one(H.count));
        const double row_bytes = static_cast<double>(depth_taps * W.cells * C * bytes);
        const double height_bytes = row_bytes * std::max(1.0, rows_per_output);
        plan.blocks.limit_heights(static_cast<double>(kPlaneBytes) / height_bytes);
    } else {
        plan.blocks.depths = 1;
    }
    plan.blocks.refine(p->how, plan.threads > 1 ? plan.threads * 8 : 1, shared);
    if (!plan.flat) plan.blocks.cut_channels(p->how);
    return plan;
}

// Joins rows of a tile into one, five at a time. T is the stored type, or the type of sums for rows joined before.
template <class T, class Join>
class Stack {
    using A = typename Join::A;
    static constexpr int L = lanes<A>;

public:
    Stack(A *into, int64_t cells, int64_t channels, int64_t stride)
        : into_(into), cells_(cells), channels_(channels), stride_(stride) {}
    void add(const T *source, A weight) {
        row_[count_] = source, weight_[count_] = weight;
        if (++count_ == 5) flush();
    }
    void finish() {
        if (count_ || fresh_) flush();
    }

private:
    void flush() {
        if (stride_ == channels_ || cells_ <= 1) {
            run(0, 0, cells_ * channels_);
        } else {
            for (int64_t w = 0; w < cells_; ++w) run(w * stride_, w * channels_, channels_);
        }
        fresh_ = false, count_ = 0;
    }
    void run(int64_t from, int64_t to, int64_t length) {
        switch (count_) {
            case 0: return run<0>(from, to, length);
            case 1: return run<1>(from, to, length);
            case 2: return run<2>(from, to, length);
            case 3: return run<3>(from, to, length);
            case 4: return run<4>(from, to, length);
            default: return run<5>(from, to, length);
        }
    }
    template <int n>
    void run(int64_t from, int64_t to, int64_t length) {
        each_vector<L>(length, [&](int64_t i, auto part) {
            vec<A> acc = fresh_ ? splat<A>(Join::identity) : get(into_ + to + i, part);
            for (int r = 0; r < n; ++r) {
                const vec<A> v = get(row_[r] + from + i, part);
                acc = Join::join(acc, Join::weighted ? v * splat<A>(weight_[r]) : v);
            }
            put(into_ + to + i, acc, part);
        });
    }

    A *into_;
    int64_t cells_, channels_, stride_;
    bool fresh_ = true;
    int count_ = 0;
    const T *row_[5];
    A weight_[5];
};

template <class S, class Join>
class Reducer {
    using A = sum_t<S>;
    using JoinedBefore = std::conditional_t<Join::weighted, Mean<A>, Join>;  // rows of the ring have their weight
    static constexpr bool backward = Join::weighted;
    static constexpr int L = lanes<A>;

public:
    Reducer(const vg_pool *p, const ReducePlan &plan, const S *x, S *y, const vg_run *run)
        : p_(p), plan_(plan), shares_(p), x_(x), y_(y), run_(run) {
        const auto reach = backward ? windows_of : cells_of;
        D = reach(p->axis[0]), H = reach(p->axis[1]), W = reach(p->axis[2]);
        C = p->channels;
        if (plan.comb.taps) inner_ = plan.comb.inside(p->axis[2].size, p->axis[2].out);
        const Range even = shares_.even();
        if (Join::divides) inner_ = {std::max(inner_.lo, even.lo), std::min(inner_.hi, even.hi)};
        const int64_t unit = (plan.flat ? W.count * C | plan.tile * C : C) * static_cast<int64_t>(sizeof(S));
        const int64_t cells = cells_in(p) * static_cast<int64_t>(sizeof(S));
        const int64_t windows = windows_in(p) * static_cast<int64_t>(sizeof(S));
        past_ = writes_past(p->how, y, backward ? cells : windows, unit, cells + windows);
    }

    void block(const Blocks::Block &b, A *scratch) const {
        for (int64_t o = 0; o < W.count && !cancelled(run_); o += plan_.tile)
            tile(b, {o, std::min(W.count, o + plan_.tile)}, scratch);
        if (past_) settle();
    }

private:
    // One range of outputs along the width, and the scratch memory of its rows.
    struct Tile {
        Range wide, cells, channel;
        A *ring, *row, *flat, *all, *counts, *packed;
        int64_t channels() const { return channel.size(); }
    };

    Tile make_tile(Range wide, Range channel, A *scratch) const {
        Tile t{wide, W.at(wide), channel, scratch, nullptr, nullptr, nullptr, nullptr, nullptr};
        t.row = t.ring + (plan_.ring ? plan_.ring_rows * plan_.row : 0);
        if (!plan_.flat) return t;
        t.flat = t.row + plan_.row;
        t.all = t.row;  // forward the row is joined inside `flat`, so that this is free
        t.counts = t.flat + plan_.row;
        t.packed = t.counts + plan_.out_row;
        std::fill_n(t.flat, plan_.row, Join::identity);
        if constexpr (Join::divides)
            for (int64_t o = wide.lo; o < wide.hi; ++o)
                std::fill_n(t.counts + (o - wide.lo) * C, C, static_cast<A>(extent(p_->axis[2], o)));
        if ((!backward || plan_.comb.step == 1) && t.cells.size() > 0) t.row = t.flat + offset_in_flat(t);
        return t;
    }

    void tile(const Blocks::Block &b, Range wide, A *scratch) const {
        const Tile t = make_tile(wide, b.channel, scratch);
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od) {
            Range depth_before{-1, -1}, height_before{-1, -1};
            int64_t next = 0;  // the first row that is not yet in the ring
            for (int64_t oh = b.height.lo; oh < b.height.hi; ++oh) {
                if (cancelled(run_)) return;
                const Range rd = D.at(od), rh = H.at(oh);
                if (!(rd == depth_before && rh == height_before)) join_rows(t, b.image, rd, rh, next);
                depth_before = rd, height_before = rh;
                S *out = y_ + (((b.image * D.count + od) * H.count + oh) * W.count + wide.lo) * C + b.channel.lo;
                const A share = static_cast<A>(Join::divides ? extent(p_->axis[0], od) * extent(p_->axis[1], oh) : 0);
                if (plan_.flat) {
                    finish_flat(t, share, out);
                } else {
                    finish_wide(t, share, out);
                }
            }
        }
    }

    // ---- depth and height ----

    void join_rows(const Tile &t, int64_t n, Range rd, Range rh, int64_t &next) const {
        if (!plan_.ring) {
            Stack<S, Join> stack(t.row, t.cells.size(), t.channels(), C);
            for (int64_t d = rd.lo; d < rd.hi && !cancelled(run_); ++d)
                for (int64_t h = rh.lo; h < rh.hi; ++h) stack.add(source(t, n, d, h), weight(d, h));
            stack.finish();
        } else {
            for (int64_t h = std::max(next, rh.lo); h < rh.hi; ++h) {
                Stack<S, Join> stack(in_ring(t, h), t.cells.size(), t.channels(), C);
                for (int64_t d = rd.lo; d < rd.hi; ++d) stack.add(source(t, n, d, h), weight(d, h));
                stack.finish();
            }
            next = std::max(next, rh.hi);
            Stack<A, JoinedBefore> stack(t.row, t.cells.size(), t.channels(), t.channels());
            for (int64_t h = rh.lo; h < rh.hi; ++h) stack.add(in_ring(t, h), A(1));
            stack.finish();
        }
        if constexpr (backward) widen_border_cells(t);
    }

    const S *source(const Tile &t, int64_t n, int64_t d, int64_t h) const {
        return x_ + (((n * D.cells + d) * H.cells + h) * W.cells + t.cells.lo) * C + t.channel.lo;
    }
    A *in_ring(const Tile &t, int64_t h) const { return t.ring + h % plan_.ring_rows * plan_.row; }

    A weight(int64_t d, int64_t h) const { return backward ? shares_.of_row(d, h) : A(1); }
    void widen_border_cells(const Tile &t) const {
        for (int64_t w = t.cells.lo; w < t.cells.hi; ++w) {
            if (w >= shares_.even().lo && w < shares_.even().hi) w = shares_.even().hi;
            if (w >= t.cells.hi) return;
            const A factor = shares_.correction(w);
            A *cell = t.row + (w - t.cells.lo) * t.channels();
            for (int64_t c = 0; c < t.channels(); ++c) cell[c] *= factor;
        }
    }

    // ---- width, a run of channels per output ----

    // Outputs at equal steps in runs, the others one by one. Forward the inner windows are such a run. Backward the
    // cells that have only inner windows over them are, those at the same place between two starts.
    void finish_wide(const Tile &t, A share, S *out) const {
        Range together{0, 0};  // outputs that went in runs
        if constexpr (backward) {
            const int64_t taps = plan_.comb.taps, step = plan_.comb.step;
            Range q{inner_.lo + (taps ? pieces(taps, step) - 1 : 0), inner_.hi};  // the windows that start the steps
            while (q.lo < q.hi && plan_.comb.at(q.lo) < t.wide.lo) ++q.lo;
            while (q.lo < q.hi && plan_.comb.at(q.hi) > t.wide.hi) --q.hi;
            if (q.size() > 0) together = {plan_.comb.at(q.lo), plan_.comb.at(q.hi)};
            for (int64_t phase = 0; q.size() > 0 && phase < step; ++phase) {
                const int64_t over = phase < taps ? (taps - phase - 1) / step + 1 : 0;
                const int64_t first = q.lo - std::max<int64_t>(over - 1, 0) - t.cells.lo;
                join_run(t, t.row + first * t.channels(), over, t.channels(),
                         out + (together.lo + phase - t.wide.lo) * C, step * C, q.size(), A(1));
            }
        } else {
            together = {std::max(t.wide.lo, inner_.lo), std::min(t.wide.hi, inner_.hi)};
            if (together.size() > 0)
                join_run(t, t.row + (plan_.comb.at(together.lo) - t.cells.lo) * t.channels(), plan_.comb.taps,
                         plan_.comb.step * t.channels(), out + (together.lo - t.wide.lo) * C, C, together.size(),
                         count_of(share, together.lo));
        }
        for (int64_t o = t.wide.lo; o < t.wide.hi; ++o) {
            if (together.size() > 0 && o == together.lo) o = together.hi;
            if (o >= t.wide.hi) return;
            const Range rw = W.at(o);
            join_run(t, t.row + (rw.lo - t.cells.lo) * t.channels(), rw.size(), 0, out + (o - t.wide.lo) * C, 0, 1,
                     count_of(share, o));
        }
    }
    A count_of(A share, int64_t o) const {
        if constexpr (!Join::divides) return A(1);
        return std::max(share * static_cast<A>(extent(p_->axis[2], o)), A(1));
    }
    // `outputs` times: joins `cells` cells of channels; then on by one stride in the row and another in the output.
    void join_run(const Tile &t, const A *from, int64_t cells, int64_t from_stride, S *out, int64_t out_stride,
                  int64_t outputs, A count) const {
        const auto run = [&](auto constant) {
            const int64_t channels = t.channels();
            for (int64_t o = 0; o < outputs; ++o, from += from_stride, out += out_stride)
                each_vector<L>(channels, [&](int64_t i, auto part) {
                    vec<A> acc = splat<A>(Join::identity);
                    for (int64_t w = 0; w < constant; ++w) acc = Join::join(acc, get(from + w * channels + i, part));
                    write(out + i, Join::divides ? acc / splat<A>(count) : acc, part);
                });
        };
        switch (cells) {
            case 1: return run(std::integral_constant<int64_t, 1>{});
            case 2: return run(std::integral_constant<int64_t, 2>{});
            case 3: return run(std::integral_constant<int64_t, 3>{});
            default: return run(cells);
        }
    }
    template <class Part>
    void write(S *out, vec<A> v, Part part) const {
        if constexpr (__is_same(Part, All))
            if (past_) return put_past(out, v);
        put(out, v, part);
    }

    // ---- width, all cells and channels as one run in which a window starts at every cell ----

    // Where the tile's source cells lie in the flat row: forward it begins with the first window, which may start
    // before the volume; backward with the first window that could reach the first cell.
    int64_t offset_in_flat(const Tile &t) const {
        if constexpr (backward) return (plan_.comb.at(t.cells.lo) - (t.wide.lo - plan_.comb.taps + 1)) * C;
        return (t.cells.lo - plan_.comb.at(t.wide.lo)) * C;
    }
    void finish_flat(const Tile &t, A share, S *out) const {
        const int64_t step = plan_.comb.step, length = t.wide.size() * C;
        if (backward || step == 1) {
            if (step > 1 && t.cells.size() > 0)
                space_out(t.row, t.flat + offset_in_flat(t), t.cells.size(), step, C, Join::identity);
            return each_vector<L>(length, [&](int64_t i, auto part) {
                write(out + i, divided(t, share, i, over_taps(t, i, part), part), part);
            });
        }
        each_vector<L>(((t.wide.size() - 1) * step + 1) * C,
                       [&](int64_t i, auto part) { put(t.all + i, over_taps(t, i, part), part); });
        close_up(t.all, t.packed, t.wide.size(), step, C);
        each_vector<L>(length, [&](int64_t i, auto part) {
            write(out + i, divided(t, share, i, get(t.packed + i, part), part), part);
        });
    }
    template <class Part>
    vec<A> over_taps(const Tile &t, int64_t i, Part part) const {
        vec<A> acc = splat<A>(Join::identity);
        for (int64_t k = 0; k < plan_.comb.taps; ++k) acc = Join::join(acc, get(t.flat + i + k * C, part));
        return acc;
    }
    template <class Part>
    vec<A> divided(const Tile &t, A share, int64_t i, vec<A> sum, Part part) const {
        if constexpr (!Join::divides) return sum;
        const vec<A> count = get(t.counts + i, part) * splat<A>(share);
        return sum / larger<A>(count, splat<A>(1));
    }

    const vg_pool *p_;
    const ReducePlan &plan_;
    const Shares<A> shares_;
    const S *x_;
    S *y_;
    const vg_run *run_;
    Reach D, H, W;
    int64_t C;
    Range inner_{0, 0};  // windows that lie wholly inside along the width (and are even, where it matters)
    bool past_;          // write around the caches
};

template <template <class> class JoinOf>
int64_t reduce_scratch(const vg_pool *p, int32_t threads) {
    return with_float(p->dtype, [&](auto t) -> int64_t {
        using S = typename decltype(t)::type;
        if (sweeps(p, JoinOf<S>::weighted, lanes<sum_t<S>>)) return sweep_scratch<S, JoinOf<S>>(p, threads);
        using A = sum_t<S>;
        const ReducePlan plan = plan_reduce(p, JoinOf<S>::weighted, sizeof(S), lanes<A>, threads);
        return plan.scratch_elements() * static_cast<int64_t>(sizeof(A)) * plan.threads;
    });
}

template <template <class> class JoinOf>
int32_t reduce(const vg_pool *p, const void *x, void *y, const vg_run *run) {
    return with_float(p->dtype, [&](auto t) -> int32_t {
        using S = typename decltype(t)::type;
        using A = sum_t<S>;
        if (sweeps(p, JoinOf<S>::weighted, lanes<A>)) return sweep<S, JoinOf<S>>(p, static_cast<const S *>(x), static_cast<S *>(y), run);
        const ReducePlan plan = plan_reduce(p, JoinOf<S>::weighted, sizeof(S), lanes<A>, run->threads);
        const Reducer<S, JoinOf<S>> reducer(p, plan, static_cast<const S *>(x), static_cast<S *>(y), run);
        return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &block, int worker) {
            reducer.block(block, static_cast<A *>(run->scratch) + worker * plan.scratch_elements());
        });
    });
}

}  // namespace VG_NAMESPACE::pool
