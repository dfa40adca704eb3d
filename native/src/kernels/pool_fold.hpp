// SPDX-License-Identifier: Apache-2.0
// The gradient of the gradient of max pooling where windows overlap: the value of `grad` at the maximum, carried along
// with the maximum while windows are joined axis by axis.
//
// Width first, then height, then depth, and an earlier cell gives way only to a larger one: what is left is the first of
// equal maxima in the order of cells. Each row of cells is joined along the width once; rows joined so, and planes
// joined along the height, wait in scratch memory for the windows that share them. At the end the maximum is compared
// with the output that was given; where that is another number, the window is searched for it (pool_match.hpp).
#pragma once

#include "pool_match.hpp"

namespace VG_NAMESPACE::pool {

// Rows of maxima and of the values that belong to them, and a vector from such rows.
template <class A>
struct Found {
    A *largest, *value;
};
template <class A>
struct FoundVector {
    vec<A> largest, value;
    FoundVector(vec<A> most, vec<A> of_it) : largest(most), value(of_it) {}
    FoundVector(const Found<A> &row, int64_t i) : largest(load(row.largest + i)), value(load(row.value + i)) {}
    // On to later cells: `largest` is a number, what comes may be none.
    void join(vec<A> most, vec<A> of_it) {
        const mask<A> wins = less<A>(largest, most);
        largest = larger<A>(most, largest);
        value = choose<A>(wins, of_it, value);
    }
    void join(const FoundVector &later) { join(later.largest, later.value); }
    template <class Part>
    void keep(const Found<A> &row, int64_t i, Part part) const {
        put(row.largest + i, largest, part), put(row.value + i, value, part);
    }
};

inline constexpr int64_t kFoldTaps = 8;  // of a window along any axis

// How the volume is cut.
struct FoldPlan {
    static constexpr int64_t kRowBytes = 1 << 16;   // a row of maxima and values
    static constexpr int64_t kRingBytes = 1 << 19;  // planes that wait: some of the second-level cache
    Blocks blocks;
    int64_t tile;          // windows along the width at a time
    int64_t planes, rows;  // that wait
    int64_t row;           // elements of a row of windows, with room for a whole vector at the end
    int64_t bytes;         // of scratch memory per thread
    int32_t threads;
    bool one_run;          // inner windows along the width are one run of elements

    FoldPlan(const vg_pool *p, const Volume &v, int64_t sum_bytes, int lane_count, int32_t wanted)
        : planes(at_least_one(v.D.longest() - 1)), rows(v.H.longest()) {
        threads = useful_threads(p, cells_in(p), wanted);
        const int64_t channels = channels_of_block(p, false, 1024, 512), cell = channels * 2 * sum_bytes;
        tile = cut_to(p->how, pieces(v.W.count, at_least_one((v.W.count * cell + kRowBytes / 2) / kRowBytes)));
        blocks = {p->batch, v.D.count, v.H.count, v.C, v.D.count, v.H.count, channels};
        blocks.limit_heights(static_cast<double>(kRingBytes) / static_cast<double>(planes * tile * cell));
        blocks.refine(p->how, threads > 1 ? threads * 2 : 1, true);
        row = pieces(tile * channels + lane_count, lane_count) * lane_count;
        bytes = (planes * blocks.heights + rows) * 2 * row * sum_bytes;
        one_run = takes(p->how, Path::one_run, v.comb.step == 1 && channels == v.C);
    }
};

template <class S>
class Fold {
    using A = sum_t<S>;
    static constexpr int L = lanes<A>;

public:
    struct Arrays {
        const S *x, *y, *grad;
        S *out;
    };
    Fold(const vg_pool *p, const Volume &volume, const FoldPlan &plan, const Arrays &arrays, const vg_run *run)
        : v(volume), plan_(plan), data(arrays), run_(run), line_(v.W.cells * v.C) {
        const int64_t size = sizeof(S), windows = windows_in(p) * size;
        past_ = writes_past(p->how, data.out, windows, v.C * size, 2 * (windows + cells_in(p) * size));
    }

    void block(const Blocks::Block &b, A *scratch) const {
        for (int64_t o = 0; o < v.W.count; o += plan_.tile)
            tile({b, {o, std::min(v.W.count, o + plan_.tile)}, b.channel.size(), scratch});
        if (past_) settle();
    }

private:
    // Some windows along the width of a block, and the memory for what waits.
    struct Tile {
        const Blocks::Block &block;
        Range wide;
        int64_t channels;
        A *scratch;
    };
    Found<A> found_at(const Tile &t, int64_t row) const {
        A *largest = t.scratch + row * 2 * plan_.row;
        return {largest, largest + plan_.row};
    }
    Found<A> row_of(const Tile &t, int64_t h) const { return found_at(t, h % plan_.rows); }
    Found<A> plane_of(const Tile &t, int64_t d, int64_t oh) const {
        return found_at(t, plan_.rows + d % plan_.planes * plan_.blocks.heights + oh - t.block.height.lo);
    }

    void tile(const Tile &t) const {
        const Range depths = t.block.depth, planes = v.D.at(depths);
        int64_t od = depths.lo;  // the first output that is not done
        for (int64_t d = planes.lo; d < planes.hi; ++d) {
            Range done{od, od};  // the outputs whose last plane this is
            while (done.hi < depths.hi && v.D.at(done.hi).hi == d + 1) ++done.hi;
            if (od < depths.hi && v.D.at(od).lo <= d) plane(t, d, done);
            od = done.hi;
        }
    }
    void plane(const Tile &t, int64_t d, Range done) const {
        int64_t next = 0;  // the first row that is not joined
        for (int64_t oh = t.block.height.lo; oh < t.block.height.hi && !cancelled(run_); ++oh) {
            const Range rh = v.H.at(oh);
            Found<A> row[kFoldTaps];
            for (int64_t h = rh.lo; h < rh.hi; ++h) {
                row[h - rh.lo] = row_of(t, h);
                if (h >= next) along_width(t, d, h, row[h - rh.lo]);
            }
            next = rh.hi;
            if (done.size() == 0) {
                keep(t, row, rh.size(), plane_of(t, d, oh));
            } else {
                finish(t, row, rh.size(), d, done, oh);
            }
        }
    }

    // ---- along the width ----

    void along_width(const Tile &t, int64_t d, int64_t h, Found<A> to) const {
        const int64_t from = v.cell(t.block.image, d, h, 0) + t.block.channel.lo;
        const Range inner{std::max(t.wide.lo, v.inner.lo), std::min(t.wide.hi, v.inner.hi)};
        const bool one_run = plan_.one_run;
        for (int64_t ow = t.wide.lo; ow < t.wide.hi;) {
            const Range rw = v.W.at(ow);
            const int64_t windows = ow == inner.lo && inner.size() > 0 ? inner.size() : 1;
            const int64_t at = (ow - t.wide.lo) * t.channels, length = t.channels * (one_run ? windows : 1);
            cells(from + rw.lo * v.C, rw.size(), length, one_run ? 1 : windows, {to.largest + at, to.value + at});
            ow += windows;
        }
    }
    // Windows at equal steps. The row below will be wanted soon.
    void cells(int64_t from, int64_t taps, int64_t length, int64_t windows, Found<A> to) const {
        const vec<A> least = splat<A>(-std::numeric_limits<A>::infinity());
        const auto run = [&](auto constant) {
            for (int64_t o = 0; o < windows; ++o)
                each_vector<L>(length, [&](int64_t i, auto part) {
                    const int64_t at = from + o * v.comb.step * v.C + i, to_at = o * length + i;
                    ask(data.x + at + line_), ask(data.grad + at + line_);
                    FoundVector<A> found(larger<A>(get(data.x + at, part), least), get(data.grad + at, part));
                    for (int64_t k = 1; k < constant; ++k)
                        found.join(get(data.x + at + k * v.C, part), get(data.grad + at + k * v.C, part));
                    found.keep(to, to_at, part);
                });
        };
        if (taps == 3) return run(std::integral_constant<int64_t, 3>{});
        if (taps == 2) return run(std::integral_constant<int64_t, 2>{});
        run(taps);
    }

    // ---- along height and depth ----

    static inline __attribute__((always_inline)) FoundVector<A> joined(const Found<A> *row, int64_t rows, int64_t i) {
        FoundVector<A> found(row[0], i);
        for (int64_t r = 1; r < rows; ++r) found.join(FoundVector<A>(row[r], i));
        return found;
    }
    void keep(const Tile &t, const Found<A> *row, int64_t rows, Found<A> kept) const {
        for (int64_t i = 0; i < t.wide.size() * t.channels; i += L) joined(row, rows, i).keep(kept, i, All{});
    }
    // The first output takes the plane as it is joined; others whose last plane it is (at the end of the volume) find
    // it where it waits. It takes the place of one that only the first output wants.
    void finish(const Tile &t, const Found<A> *row, int64_t rows, int64_t d, Range done, int64_t oh) const {
        const Found<A> kept = plane_of(t, d, oh);
        Found<A> plane[kFoldTaps];
        const auto planes_of = [&](int64_t od, int64_t end) {
            const int64_t first = v.D.at(od).lo;
            for (int64_t e = first; e < end; ++e) plane[e - first] = plane_of(t, e, oh);
            return end - first;
        };
        const int64_t planes = planes_of(done.lo, d);
        write(t, done.lo, oh, [&](int64_t i, auto part) {
            const FoundVector<A> last = joined(row, rows, i);
            FoundVector<A> found = planes > 0 ? joined(plane, planes, i) : last;
            found.join(last);
            last.keep(kept, i, part);
            return found;
        });
        for (int64_t od = done.lo + 1; od < done.hi; ++od) {
            const int64_t all = planes_of(od, d + 1);
            write(t, od, oh, [&](int64_t i, auto) { return joined(plane, all, i); });
        }
    }
    // What `find` gives for each vector of a row of windows.
    template <class Find>
    inline __attribute__((always_inline)) void write(const Tile &t, int64_t od, int64_t oh, Find &&find) const {
        const int64_t first = v.window(t.block.image, od, oh, t.wide.lo) + t.block.channel.lo;
        const bool whole = t.channels == v.C;
        const int64_t runs = whole ? 1 : t.wide.size(), length = t.channels * (whole ? t.wide.size() : 1);
        for (int64_t r = 0; r < runs; ++r)
            each_vector<L>(length, [&](int64_t i, auto part) {
                const int64_t at = first + r * v.C + i;
                const FoundVector<A> found = find(r * length + i, part);
                ask(data.y + at + v.W.count * v.C);
                if (!is_given(found.largest, get(data.y + at, part), part))
                    return search(t, od, oh, at, lanes_of<L>(part));
                if constexpr (__is_same(decltype(part), All))
                    if (past_) return put_past(data.out + at, found.value);
                put(data.out + at, found.value, part);
            });
    }
    // Whether the maxima are the outputs that were given. One without a bound may also be that of no number at all.
    template <class Part>
    static bool is_given(vec<A> largest, vec<A> y, Part part) {
        const vec<A> least = splat<A>(-std::numeric_limits<A>::infinity());
        return all_of<A>(both(equal<A>(y, largest), less<A>(least, y)), part);
    }
    // The outputs from element `at` on, one by one.
    __attribute__((noinline)) void search(const Tile &t, int64_t od, int64_t oh, int64_t at, int64_t count) const {
        const Range rd = v.D.at(od), rh = v.H.at(oh);
        const int64_t row = v.window(t.block.image, od, oh, 0);
        for (const int64_t end = at + count; at < end;) {
            const int64_t ow = (at - row) / v.C, c = (at - row) % v.C, run = std::min(end - at, v.C - c);
            const Range rw = v.W.at(ow);
            const Taps taps{v.cell(t.block.image, rd.lo, rh.lo, rw.lo) + c, v.H.cells * line_, line_, v.C,
                            rd.size(), rh.size(), rw.size(), {}};
            values_at_match(taps, data.x, data.y + at, data.grad, data.out + at, run);
            at += run;
        }
    }

    const Volume &v;
    const FoldPlan &plan_;
    const Arrays data;
    const vg_run *run_;
    const int64_t line_;  // elements of a row of cells
    bool past_;           // write around the caches
};

// Whether this way is open and the better one: windows at equal steps, none of them empty, that share most cells.
template <class S>
bool folds(const vg_pool *p) {
    if constexpr (std::is_integral_v<S>) return false;
    double overlap = 1;
    bool open = p->channels > 0;
    for (const vg_span &axis : p->axis) {
        const Reach reach = cells_of(axis);
        const Comb comb = comb_of(axis);
        open = open && comb.taps > 0 && comb.taps <= kFoldTaps;
        for (int64_t o = 0; open && o < reach.count; ++o) open = reach.at(o).size() > 0;
        overlap *= reach.overlap();
    }
    if (!open || overlap <= 2) return takes(p->how, Path::fold, open, false);
    const Volume v(p, lanes<sum_t<S>>);
    return takes(p->how, Path::fold, true, !v.flat || v.comb.step == 1);
}

template <class S>
int64_t fold_scratch(const vg_pool *p, int32_t threads) {
    using A = sum_t<S>;
    const FoldPlan plan(p, Volume(p, lanes<A>), sizeof(A), lanes<A>, threads);
    return plan.bytes * plan.threads;
}

template <class S>
int32_t fold(const vg_pool *p, const typename Fold<S>::Arrays &arrays, const vg_run *run) {
    using A = sum_t<S>;
    const Volume v(p, lanes<A>);
    const FoldPlan plan(p, v, sizeof(A), lanes<A>, run->threads);
    const Fold<S> fold(p, v, plan, arrays, run);
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int worker) {
        fold.block(b, reinterpret_cast<A *>(static_cast<char *>(run->scratch) + worker * plan.bytes));
    });
}

}  // namespace VG_NAMESPACE::pool
