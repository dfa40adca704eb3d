// SPDX-License-Identifier: Apache-2.0
// Average and max pooling with windows of few rows, and the gradient of the average: for some channels at a time, the
// cells of a column (all depths and heights of a window) are joined as they are loaded, and columns that the next window
// shares stay in registers. What planes that the next depth shares give waits in scratch memory: so a cell is loaded
// fewer times, and from fewer rows at once (rows a power of two apart take the same places of the first-level cache).
// Backward the windows over a cell take the place of the cells of a window; cells are written in their order, which
// caches and memory like best.
#pragma once

#include "pool_join.hpp"

namespace VG_NAMESPACE::pool {

inline constexpr int64_t kSweepRows = 16, kSweepTaps = 4;
inline constexpr int64_t kSweepBytes = 8 << 10;  // of a row
inline constexpr bool kMayCarry = VG_VECTOR_BYTES >= 32;
// Rows of windows whose shared planes are kept for the next depth: at most, at least to be worth it, and their bytes.
inline constexpr int64_t kCarryRows = 8, kCarryRowsWorth = VG_VECTOR_BYTES == 64 ? 8 : 4, kCarryBytes = 1 << 18;
// Vectors of channels at a time: fewer where several columns are kept, which take registers, too.
inline constexpr int kSweepVectors = VG_VECTOR_BYTES >= 32 ? 8 : 4, kKeptVectors = VG_VECTOR_BYTES == 64 ? 4 : 2;
inline int64_t sweep_vectors(const Comb &comb) { return comb.taps > 2 * comb.step ? kKeptVectors : kSweepVectors; }

// One address for several vectors: left alone, the compiler keeps an index for each of them and runs out of registers.
template <class S>
inline const S *in_register(const S *place) {
    asm("" : "+r"(place));
    return place;
}

inline Reach sweep_reach(const vg_span &axis, bool backward) { return backward ? windows_of(axis) : cells_of(axis); }

// How many turns the channels may take. Where vectors are short, other ways are slower, too.
inline int64_t sweep_turns(const Comb &comb, bool backward) {
    return VG_VECTOR_BYTES == 32 && (backward || comb.taps > 2 * comb.step) ? 4 : 2;
}

// Whether this way is open and the best: regular windows of few rows, channels that fill vectors and take few turns.
inline bool sweeps(const vg_pool *p, bool backward, int lane_count) {
    const Comb comb = comb_of(p->axis[2]);
    const int64_t rows = sweep_reach(p->axis[0], backward).longest() * sweep_reach(p->axis[1], backward).longest();
    // Backward, columns are kept by place, so places without a window count, too.
    const bool fits = !backward || comb.taps <= kSweepTaps * comb.step;
    return takes(p->how, Path::sweep, comb.taps > 0 && fits && rows > 0 && rows <= kSweepRows,
                 sweep_reach(p->axis[2], backward).longest() <= kSweepTaps &&
                     p->channels <= sweep_turns(comb, backward) * sweep_vectors(comb) * lane_count &&
                     !prefers_flat(comb, p->channels, lane_count));
}

// The elements of a pool that is swept, as far as it matters how large they are.
struct SweepElements {
    bool backward, divides;
    int64_t stored, summed;  // bytes
    int lane_count;
};

// What is decided before the work. The same code for all types, which it would take long to compile for each.
class SweepPlan {
public:
    SweepPlan(const vg_pool *p, const SweepElements &e, const void *y)
        : p_(p), e_(e), D(sweep_reach(p->axis[0], e.backward)), H(sweep_reach(p->axis[1], e.backward)),
          W(sweep_reach(p->axis[2], e.backward)), C(p->channels), comb_(comb_of(p->axis[2])), inner_(whole()) {
        const vg_how &how = p->how;
        const bool backward = e.backward;
        shared_ = takes(how, Path::shared, shares(D), backward ? D.longest() > 2 : D.overlap() > 1.2);
        twice_ = carries_twice();
        pairs_ = takes(how, Path::pairs, shares(H) && !twice_, backward ? H.longest() > 2 : H.overlap() > 1.7);
        carries_ = twice_ || (!pairs_ && carries_once());
        const bool few = comb_.step == 1 ? comb_.taps == 2 || comb_.taps == 3 : comb_.step == 2 && comb_.taps == 3;
        known_ = takes(how, Path::known, few || (backward && comb_.taps <= comb_.step));
        vectors_ = twice_ ? 2 : pairs_ || carries_ ? kKeptVectors : sweep_vectors(comb_);
        // Where the channels take several turns, the cells must still be near for the next one; backward there are few.
        const int64_t cell = C * e.stored, near = kSweepBytes / at_least_one(cell * comb_.step);
        const bool one_turn = backward || C <= vectors_ * e.lane_count;
        tile_ = one_turn ? at_least_one(W.count) : std::clamp<int64_t>(near, 4, std::max<int64_t>(W.count, 4));
        tile_ = cut_to(how, tile_);
        const bool far = shared_ || (!backward && C <= 64 && asks_ahead(p, D.longest() * H.longest()));
        asks_ = takes(how, Path::asks, true, far);
        const int64_t cells = cells_in(p) * e.stored, windows = windows_in(p) * e.stored;
        past_ = writes_past(how, y, backward ? cells : windows, cell, windows + cells, backward && !shared_);
    }

    Blocks blocks(int32_t threads) const {
        Blocks blocks = {p_->batch, D.count, H.count, C, at_least_one(D.count), at_least_one(H.count), at_least_one(C)};
        if (shared_) {
            const double rows = static_cast<double>(H.cells) / static_cast<double>(at_least_one(H.count));
            const double row = static_cast<double>(D.longest() * W.cells * C) * static_cast<double>(e_.stored);
            blocks.limit_heights(static_cast<double>(1 << 18) / (row * std::max(1.0, rows)));
        } else {
            blocks.depths = 1;
        }
        if (carries_) blocks.heights = std::min(blocks.heights, at_least_one(carry_rows(twice_ ? 2 : 1)));
        blocks.refine(p_->how, threads > 1 ? threads * 4 : 1, shared_);
        // What is taken together stays together, however many threads there are: the code of one row may order what it
        // adds in another way than that of two, which shows in the sign of a NaN.
        if (twice_) blocks.depths += blocks.depths % 2;
        if (pairs_) blocks.heights += blocks.heights % 2;
        blocks.cut_channels(p_->how);
        return blocks;
    }

    int32_t useful_threads(int32_t threads) const {
        const int64_t work = p_->batch * D.count * H.count * std::max(W.cells, W.count) * C;
        return pool::useful_threads(p_, work * at_least_one(D.longest()), threads);
    }

    // Elements of scratch memory of a thread.
    int64_t scratch(int32_t threads) const {
        const Blocks all = blocks(threads);
        return carries_ ? all.heights * carried_row(all.channels) : 0;
    }
    int64_t scratch_bytes(int32_t threads) const {
        threads = useful_threads(threads);
        return scratch(threads) * threads * e_.summed;
    }

protected:
    // The windows that lie wholly inside; none, if some of them count otherwise (cut at the end of a larger volume).
    Range whole() const {
        const vg_span &axis = p_->axis[2];
        const Range inner = comb_.inside(axis.size, axis.out);
        for (int64_t o = inner.lo; e_.divides && o < inner.hi; ++o)
            if (extent(axis, o) != comb_.taps) return {0, 0};
        return inner;
    }
    // Rows of windows whose `sets` of kept sums fit the second-level cache beside the cells.
    int64_t carry_rows(int64_t sets) const {
        const int64_t row = sets * p_->axis[2].out * C * e_.summed;
        return std::min(kCarryBytes / at_least_one(row), kCarryRows);
    }
    // Planes are shared with the next depth, but none with the one after. Pays only with vectors of 64 bytes.
    bool carries_once() const {
        if (e_.backward || !kMayCarry) return false;
        const Comb comb = comb_of(p_->axis[0]);
        return takes(p_->how, Path::carry_once, comb.taps > comb.step && comb.taps <= 2 * comb.step,
                     VG_VECTOR_BYTES == 64 && carry_rows(1) >= kCarryRowsWorth);
    }
    // Of three planes the next depth shares two. Shorter vectors must come in pairs to be worth it.
    bool carries_twice() const {
        if (e_.backward || !kMayCarry) return false;
        const Comb comb = comb_of(p_->axis[0]);
        const bool paired = VG_VECTOR_BYTES > 32 || C >= 2 * e_.lane_count;
        return takes(p_->how, Path::carry_twice, comb.taps == 3 && comb.step == 1,
                     paired && carry_rows(2) >= kCarryRowsWorth);
    }
    // Whether neighbours along an axis have cells in common; backward, cells have windows.
    bool shares(const Reach &reach) const { return e_.backward ? reach.longest() > 1 : reach.overlap() > 1; }
    // Elements that are kept of a row of windows, some channels after the others: those that are summed together.
    int64_t carried_row(int64_t channels) const {
        return W.count * pieces(channels, e_.lane_count) * e_.lane_count * (twice_ ? 2 : 1);
    }
    // The planes that depth `od` shares with the next.
    Range shared_after(int64_t od) const {
        const int64_t end = od < 0 ? 0 : D.at(od).hi;
        if (od < 0 || od + 1 >= D.count || D.at(od + 1).lo >= end) return {end, end};
        return {D.at(od + 1).lo, end};
    }
    // The rows that windows at `oh` share with those beside them, above or below: these are joined first, whether or not
    // both are taken together, so that a sum is the same wherever the volume is cut.
    Range in_both(int64_t oh) const {
        const int64_t other = oh ^ 1;
        if (!pairs_ || other >= H.count) return {0, 0};
        const Range one = H.at(oh), two = H.at(other);
        return {std::max(one.lo, two.lo), std::min(one.hi, two.hi)};
    }
    struct Next {
        Range depth{0, 0}, height{0, 0};
    };
    // Where depths share planes, each brings in the new ones of the next, as far as it goes itself.
    Next wanted_next(const Blocks::Block &b, int64_t od, int64_t oh, int outs) const {
        const Range rh = H.at(oh);
        if (!shared_) return oh + outs < b.height.hi ? Next{D.at(od), H.at(oh + outs)} : Next{};
        const int64_t depths = twice_ ? 2 : 1, after = od + depths, last = std::min(after + depths, b.depth.hi) - 1;
        if (after >= b.depth.hi || D.at(after).size() == 0) return {};
        const int64_t first = oh == b.height.lo ? rh.lo : std::max(rh.lo, H.at(oh - 1).hi);
        return {{D.at(after - 1).hi, D.at(last).hi}, {first, H.at(oh + outs - 1).hi}};
    }

    const vg_pool *p_;
    const SweepElements e_;
    const Reach D, H, W;
    const int64_t C;
    const Comb comb_;
    const Range inner_;     // windows that lie wholly inside along the width
    int64_t vectors_;       // of channels at a time
    int64_t tile_;          // outputs along the width at a time
    bool shared_;           // depths share planes
    bool pairs_;            // two rows of windows at a time
    bool carries_;          // keeps what a depth shares with the next
    bool twice_;            // and takes two depths at a time
    bool known_;            // the compiler knows taps and step
    bool asks_;             // brings in rows before they are wanted
    bool past_;             // write around the caches
};

// Rows, and by what their numbers are multiplied.
template <class A>
struct RowList {
    const void *row[2 * kSweepRows];
    A weight[2 * kSweepRows];
    int64_t count = 0;
    void add(const void *one, A share) {
        weight[count] = share;
        row[count++] = in_register(one);  // so that the compiler does not multiply addresses in vectors
    }
};
// What a row of windows takes from the depth before and leaves to the next.
template <class A>
struct Carried {
    A *row;
    bool take, keep, give;  // give: write outputs
    Range own, shared;      // planes: of this depth alone, and those to keep
};
// The rows of one or two rows of windows: those that both have and those of each, and those that will be wanted next. Of
// a single row of windows all are its own.
template <class A>
struct SweepRows {
    RowList<A> both, own[2], ahead;
    Carried<A> carried{};
    int64_t depth = 0;
};

// The same code for all that is summed in this type.
template <class A>
class SweepLists : public SweepPlan {
protected:
    SweepLists(const vg_pool *p, const SweepElements &e, const void *y) : SweepPlan(p, e, y), shares_(p) {}

    // `x` is where the channels begin.
    __attribute__((noinline)) void list_rows(SweepRows<A> &rows, const Blocks::Block &b, int64_t od, int64_t oh,
                                             const void *x, int outs) const {
        const Range both = in_both(oh), planes = D.at(od);
        if (both.size() > 0) list(outs == 2 ? rows.both : rows.own[0], x, b.image, planes, both, {0, 0}, e_.backward);
        for (int k = 0; k < outs; ++k) list(rows.own[k], x, b.image, planes, H.at(oh + k), both, e_.backward);
        if (asks_) list_next(rows, b, od, oh, x, outs);
    }
    __attribute__((noinline)) void list_carried(SweepRows<A> &rows, const Blocks::Block &b, int64_t od, int64_t oh,
                                                const void *x, const Carried<A> &carried) const {
        rows.carried = carried, rows.depth = od;
        const Range rh = H.at(oh);
        list(twice_ ? rows.own[1] : rows.both, x, b.image, carried.shared, rh, {0, 0});
        list(rows.own[0], x, b.image, carried.own, rh, {0, 0});
        if (asks_) list_next(rows, b, od, oh, x, 1);
    }
    const Shares<A> shares_;

private:
    void list_next(SweepRows<A> &rows, const Blocks::Block &b, int64_t od, int64_t oh, const void *x, int outs) const {
        const Next next = wanted_next(b, od, oh, outs);
        list(rows.ahead, x, b.image, next.depth, next.height, {0, 0});
    }
    // The rows of some planes, but those of heights that are left out.
    void list(RowList<A> &to, const void *x, int64_t image, Range planes, Range heights, Range out,
              bool weighs = false) const {
        const int64_t line = W.cells * C * e_.stored;
        for (int64_t d = planes.lo; d < planes.hi; ++d) {
            const char *row = static_cast<const char *>(x) + ((image * D.cells + d) * H.cells + heights.lo) * line;
            for (int64_t h = heights.lo; h < heights.hi; ++h, row += line)
                if (h < out.lo || h >= out.hi) to.add(row, weighs ? shares_.of_row(d, h) : A(1));
        }
    }
};

template <class S, class Join>
class Sweep : public SweepLists<sum_t<S>> {
    using A = sum_t<S>;
    using Plan = SweepLists<A>;
    using Plan::C, Plan::D, Plan::H, Plan::W, Plan::p_, Plan::shares_, Plan::comb_, Plan::inner_, Plan::vectors_,
        Plan::tile_, Plan::pairs_, Plan::carries_, Plan::twice_, Plan::known_, Plan::past_;
    static constexpr int L = lanes<A>;
    static constexpr bool backward = Join::weighted;
    static constexpr bool may_carry = !backward && kMayCarry;

public:
    static constexpr SweepElements elements{backward, Join::divides, sizeof(S), sizeof(A), L};
    Sweep(const vg_pool *p, const S *x, S *y, const vg_run *run)
        : Plan(p, elements, y), x_(x), y_(y), run_(run) {}

    void block(const Blocks::Block &b, A *scratch) const {
        if constexpr (may_carry)
            if (carries_) twice_ ? carry_twice(b, scratch) : carry_once(b, scratch);
        for (int64_t od = b.depth.lo; od < b.depth.hi && !carries_; ++od) plane(b, od);
        if (past_) settle();
    }

private:
    void plane(const Blocks::Block &b, int64_t od) const {
        for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run_);) {
            const int64_t outs = pairs_ && oh % 2 == 0 && oh + 1 < b.height.hi ? 2 : 1;
            for (int64_t o = 0; o < W.count; o += tile_) {
                const Range wide{o, std::min(W.count, o + tile_)};
                if (outs == 2) channels<2>(b, od, oh, wide);
                else channels<1>(b, od, oh, wide);
            }
            oh += outs;
        }
    }

    // ---- what a depth shares with the next, kept in rows of scratch memory ----

    // Where an output and what is kept of it lie.
    struct Place {
        S *out;
        A *kept;
    };
    void carry_once(const Blocks::Block &b, A *scratch) const {
        const Range before = this->shared_after(b.depth.lo - 1);
        if (before.size() > 0) carry_plane(b, b.depth.lo, {scratch, false, true, false, {0, 0}, before});
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od) {
            const Range taken = this->shared_after(od - 1), kept = this->shared_after(od), all = D.at(od);
            const Range own{taken.size() > 0 ? taken.hi : all.lo, kept.size() > 0 ? kept.lo : all.hi};
            carry_plane(b, od, {scratch, taken.size() > 0, kept.size() > 0, true, own, kept});
        }
    }
    // Two depths at a time, which bring two planes. Kept are what both give together and what the last one gives.
    void carry_twice(const Blocks::Block &b, A *scratch) const {
        const auto plane = [&](int64_t d) { return d >= 0 && d < D.cells ? Range{d, d + 1} : Range{0, 0}; };
        const int64_t first = comb_of(p_->axis[0]).at(b.depth.lo);
        carry_plane(b, b.depth.lo, {scratch, false, true, false, plane(first), plane(first + 1)});
        for (int64_t od = b.depth.lo, d = first + 2; od < b.depth.hi; od += 2, d += 2)
            carry_plane(b, od, {scratch, true, true, true, plane(d), plane(d + 1)});
    }
    void carry_plane(const Blocks::Block &b, int64_t od, Carried<A> carried) const {
        for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run_); ++oh) {
            channels<1>(b, od, oh, {0, W.count}, &carried);
            carried.row += this->carried_row(b.channel.size());
        }
    }
    template <class Taken, class Part>
    inline __attribute__((always_inline)) void write_once(const Taken &rows, Place to, const vec<A> (&sum)[Taken::sums],
                                                          A count, Part part) const {
        constexpr int n = Taken::vectors;
        vec<A> all[n];
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) {
            all[j] = rows.carried.take ? Join::join(sum[j], load(to.kept + j * L)) : sum[j];
            if (rows.carried.keep) store(to.kept + j * L, sum[n + j]);
            if constexpr (Join::divides) all[j] = all[j] / splat<A>(count);
        }
        if (rows.carried.give) write<n>(to.out, all, part);
    }
    template <class Taken, class Divisors, class Part>
    inline __attribute__((always_inline)) void write_twice(const Taken &rows, Place to, const vec<A> (&sum)[Taken::sums],
                                                           const Divisors &counts, Part part) const {
        constexpr int n = Taken::vectors;
        A *last = to.kept + n * L;
        vec<A> both[n], one[n], two[n];
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) both[j] = Join::join(sum[j], sum[n + j]);
        if (rows.carried.give) {
#pragma GCC unroll 8
            for (int j = 0; j < n; ++j) {
                one[j] = Join::join(load(to.kept + j * L), sum[j]);
                two[j] = Join::join(load(last + j * L), both[j]);
                if constexpr (Join::divides) one[j] /= splat<A>(counts.of[0]), two[j] /= splat<A>(counts.of[1]);
            }
            write<n>(to.out, one, part);
            if (rows.depth + 1 < D.count) write<n>(to.out + H.count * W.count * C, two, part);
        }
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) store(to.kept + j * L, both[j]), store(last + j * L, sum[n + j]);
    }

    // The rows of one or two rows of windows, for n vectors of channels, and rows that will be wanted next. First come the
    // rows that both have.
    template <int n, int outs_, bool carries = false>
    struct Rows : SweepRows<A> {
        static constexpr int vectors = n, outs = outs_, parts = carries ? 2 : outs, sums = n * parts;
        static constexpr bool carry = carries;
        template <class Part>
        inline __attribute__((always_inline)) void join(int64_t at, vec<A> (&into)[sums], Part part) const {
            for (int64_t r = 0; r < this->ahead.count; ++r) {
                const S *from = in_register(static_cast<const S *>(this->ahead.row[r]) + at);
#pragma GCC unroll 8
                for (int j = 0; j < n; ++j) ask(from + j * L);
            }
            if constexpr (parts == 2) {
                join(this->both, at, into, 0, part);
#pragma GCC unroll 8
                for (int j = 0; j < n; ++j) into[n + j] = into[j];
                join(this->own[1], at, into, n, part);
            }
            join(this->own[0], at, into, 0, part);
        }
        template <class Part>
        static inline __attribute__((always_inline)) void join(const RowList<A> &list, int64_t at,
                                                               vec<A> (&into)[sums], int to, Part part) {
            for (int64_t r = 0; r < list.count; ++r) {
                vec<A> v[n];
                get_several(in_register(static_cast<const S *>(list.row[r]) + at), v, part);
#pragma GCC unroll 8
                for (int j = 0; j < n; ++j) {
                    if constexpr (Join::weighted) into[to + j] = Join::join(into[to + j], v[j] * splat<A>(list.weight[r]));
                    else into[to + j] = Join::join(into[to + j], v[j]);
                }
            }
        }
    };
    // All channels of some outputs of a row, as many vectors at a time as there are registers.
    template <int outs>
    void channels(const Blocks::Block &b, int64_t od, int64_t oh, Range wide, const Carried<A> *carried = nullptr) const {
        int64_t c = b.channel.lo;
        const auto some = [&]<int n>(std::integral_constant<int, n>, auto part) {
            if constexpr (may_carry && outs == 1 && n <= kKeptVectors)
                if (carried) return carrying<n>(b, od, oh, wide, c, *carried, part);
            row<outs, n>(b, od, oh, wide, c, part);
        };
        const auto all = [&]<int n>(std::integral_constant<int, n> vectors) {
            for (; vectors_ >= n && c + n * L <= b.channel.hi; c += n * L) some(vectors, All{});
        };
        if constexpr (outs == 1) all(std::integral_constant<int, kSweepVectors>{});
        if constexpr (outs == 1 || kKeptVectors == 4) all(std::integral_constant<int, 4>{});
        all(std::integral_constant<int, 2>{});
        all(std::integral_constant<int, 1>{});
        if (c < b.channel.hi) some(std::integral_constant<int, 1>{}, Some{static_cast<int>(b.channel.hi - c)});
    }
    template <int n, class Part>
    __attribute__((noinline)) void carrying(const Blocks::Block &b, int64_t od, int64_t oh, Range wide, int64_t c,
                                            const Carried<A> &carried, Part part) const {
        Rows<n, 1, true> rows;
        this->list_carried(rows, b, od, oh, x_ + c, carried);
        A *kept = carried.row + this->carried_row(c - b.channel.lo);
        outputs(rows, od, oh, wide, {target(b.image, od, oh, c), kept}, part);
    }
    template <int outs, int n, class Part>
    __attribute__((noinline)) void row(const Blocks::Block &b, int64_t od, int64_t oh, Range wide, int64_t c,
                                       Part part) const {
        Rows<n, outs> rows;
        this->list_rows(rows, b, od, oh, x_ + c, outs);
        if constexpr (backward) spread<outs>(rows, wide, target(b.image, od, oh, c), part);
        else outputs(rows, od, oh, wide, {target(b.image, od, oh, c), nullptr}, part);
    }
    S *target(int64_t image, int64_t od, int64_t oh, int64_t c) const {
        return y_ + ((image * D.count + od) * H.count + oh) * W.count * C + c;
    }

    // By what the sums are divided.
    template <int parts>
    struct Counts {
        A of[parts];
    };
    template <class Taken>
    Counts<Taken::parts> counts_of(int64_t od, int64_t oh, int64_t o) const {
        Counts<Taken::parts> counts;
        for (int k = 0; k < Taken::parts; ++k) {
            const vg_span *axis = p_->axis;
            const int64_t d = Taken::carry ? std::min(od + k, D.count - 1) : od, h = Taken::carry ? oh : oh + k;
            const A rows = static_cast<A>(Join::divides ? extent(axis[0], d) * extent(axis[1], h) : 1);
            counts.of[k] = std::max(rows * static_cast<A>(Join::divides ? extent(axis[2], o) : 1), A(1));
        }
        return counts;
    }
    // Windows along the width: the inner ones in a run, the others one by one.
    template <class Taken, class Part>
    void outputs(const Taken &rows, int64_t od, int64_t oh, Range wide, Place first, Part part) const {
        const auto place = [&](int64_t o) { return Place{first.out + o * C, first.kept + o * kept_of<Taken>()}; };
        const Range inner{std::max(wide.lo, inner_.lo), std::min(wide.hi, inner_.hi)};
        for (int64_t o = wide.lo; o < wide.hi; ++o) {
            if (o == inner.lo && inner.size() > 0) {
                inside(rows, inner, place(o), counts_of<Taken>(od, oh, o), part);
                o = inner.hi;
                if (o >= wide.hi) return;
            }
            const Range rw = W.at(o);
            run<0, 0>(rows, rw.lo, rw.size(), 0, 1, place(o), counts_of<Taken>(od, oh, o), part);
        }
    }
    template <class Taken, class Divisors, class Part>
    void inside(const Taken &rows, Range inner, Place to, const Divisors &counts, Part part) const {
        const int64_t first = comb_.at(inner.lo), taps = comb_.taps, step = comb_.step, windows = inner.size();
        if (!known_) return run<0, 0>(rows, first, taps, step, windows, to, counts, part);
        if (taps == 3 && step == 1) return run<3, 1>(rows, first, taps, step, windows, to, counts, part);
        if (taps == 3 && step == 2) return run<3, 2>(rows, first, taps, step, windows, to, counts, part);
        if (taps == 2 && step == 1) return run<2, 1>(rows, first, taps, step, windows, to, counts, part);
        run<0, 0>(rows, first, taps, step, windows, to, counts, part);
    }

    // Windows at equal steps. With a known number of taps over the step, the columns that two windows share are kept.
    template <int known, int known_step, class Taken, class Divisors, class Part>
    void run(const Taken &rows, int64_t cell, int64_t taps, int64_t step, int64_t windows, Place to, const Divisors &counts,
             Part part) const {
        constexpr int kept = known - known_step, sums = Taken::sums;
        vec<A> old[kept > 0 ? kept : 1][sums];
#pragma GCC unroll 4
        for (int k = 0; k < kept; ++k) {
            vec<A> first[sums];  // `old` itself stays in registers
            column_apart(rows, (cell + k) * C, first, part);
#pragma GCC unroll 8
            for (int j = 0; j < sums; ++j) old[k][j] = first[j];
        }
        for (int64_t o = 0; o < windows; ++o, cell += step, to.out += C, to.kept += kept_of<Taken>()) {
            vec<A> sum[sums], fresh[sums];
#pragma GCC unroll 8
            for (int j = 0; j < sums; ++j) sum[j] = kept > 0 ? old[0][j] : splat<A>(Join::identity);
#pragma GCC unroll 4
            for (int k = 0; k < kept; ++k) {
#pragma GCC unroll 8
                for (int j = 0; j < sums; ++j) {
                    if (k > 0) sum[j] = Join::join(sum[j], old[k][j]);
                    if (k >= known_step) old[k - known_step][j] = old[k][j];
                }
            }
            const int64_t end = known ? known : taps;
#pragma GCC unroll 4
            for (int64_t k = kept > 0 ? kept : 0; k < end; ++k) {
                column(rows, (cell + k) * C, fresh, part);
#pragma GCC unroll 8
                for (int j = 0; j < sums; ++j) {
                    sum[j] = Join::join(sum[j], fresh[j]);
                    if (kept > 0 && k >= known_step) old[kept > 0 ? k - known_step : 0][j] = fresh[j];
                }
            }
            finish(rows, to, sum, counts, part);
        }
    }
    template <class Taken, class Divisors, class Part>
    inline __attribute__((always_inline)) void finish(const Taken &rows, Place to, vec<A> (&sum)[Taken::sums],
                                                      const Divisors &counts, Part part) const {
        constexpr int n = Taken::vectors;
        if constexpr (Taken::carry) {
            if (twice_) write_twice(rows, to, sum, counts, part);
            else write_once(rows, to, sum, counts.of[0], part);
        } else {
            if constexpr (Join::divides) {
#pragma GCC unroll 8
                for (int j = 0; j < Taken::sums; ++j) sum[j] = sum[j] / splat<A>(counts.of[j / n]);
            }
            write<n>(to.out, sum, part);
        }
    }
    // Elements that are kept of an output, for the channels that are summed together.
    template <class Taken>
    int64_t kept_of() const {
        return Taken::carry ? (twice_ ? 2 : 1) * Taken::vectors * L : 0;
    }
    // Backward: cells along the width. Those from the start of a window to that of the next share its column.
    template <int outs, class Taken, class Part>
    void spread(const Taken &rows, Range wide, S *out, Part part) const {
        const int64_t taps = comb_.taps, step = comb_.step;
        constexpr std::integral_constant<int64_t, 3> three;
        if (!known_) return cells<kSweepTaps - 1>(rows, taps, step, wide, out, part);
        if (taps == 3 && step == 1) return cells<2>(rows, three, std::integral_constant<int64_t, 1>{}, wide, out, part);
        if constexpr (outs == 1) {
            if (taps == 3 && step == 2)
                return cells<1>(rows, three, std::integral_constant<int64_t, 2>{}, wide, out, part);
            if (taps <= step) return cells<0>(rows, taps, step, wide, out, part);
        }
        cells<kSweepTaps - 1>(rows, taps, step, wide, out, part);
    }
    template <int kept, class Taken, class Taps, class Step, class Part>
    void cells(const Taken &rows, Taps taps, Step step, Range wide, S *out, Part part) const {
        constexpr int sums = Taken::sums, n = Taken::vectors;
        vec<A> old[kept > 0 ? kept : 1][sums] = {};  // columns, the last one first
        int64_t window = (wide.lo - comb_.start) / step;  // the last that starts no later than the first cell
        if (comb_.at(window) > wide.lo) --window;
        window -= kept;  // those before it bring in their columns and write nothing
        for (int64_t first = comb_.at(window); first < wide.hi; first += step, ++window) {
            vec<A> fresh[sums];
            window_column(rows, window, fresh, part);
            const auto cell = [&](int64_t phase) __attribute__((always_inline)) {
                if (first + phase < wide.lo || first + phase >= wide.hi) return;
                vec<A> sum[sums];
#pragma GCC unroll 8
                for (int j = 0; j < sums; ++j) {
                    sum[j] = phase < taps ? fresh[j] : vec<A>{};
                    for (int k = 0; k < kept; ++k)
                        if ((k + 1) * step + phase < taps) sum[j] += old[k][j];
                }
                write<n>(out + (first + phase) * C, sum, part);
            };
            cell(0);
            for (int64_t phase = 1; phase < step; ++phase) cell(phase);
#pragma GCC unroll 8
            for (int j = 0; j < sums; ++j) {
                for (int k = kept - 1; k > 0; --k) old[k][j] = old[k - 1][j];
                if (kept > 0) old[0][j] = fresh[j];
            }
        }
    }
    // Zero for a window that does not exist.
    template <class Taken, class Part>
    inline __attribute__((always_inline)) void window_column(const Taken &rows, int64_t window,
                                                             vec<A> (&into)[Taken::sums], Part part) const {
        if (window < 0 || window >= W.cells) {
#pragma GCC unroll 8
            for (int j = 0; j < Taken::sums; ++j) into[j] = vec<A>{};
            return;
        }
        column(rows, window * C, into, part);
        if (window >= shares_.even().lo && window < shares_.even().hi) return;
#pragma GCC unroll 8
        for (int j = 0; j < Taken::sums; ++j) into[j] *= splat<A>(shares_.correction(window));
    }

    template <class Taken, class Part>
    static inline __attribute__((always_inline)) void column(const Taken &rows, int64_t at, vec<A> (&into)[Taken::sums],
                                                             Part part) {
#pragma GCC unroll 8
        for (int j = 0; j < Taken::sums; ++j) into[j] = splat<A>(Join::identity);
        rows.join(at, into, part);
    }

    // The same where it is rare: one piece of code for all windows of some vectors.
    template <class Taken, class Part>
    static __attribute__((noinline)) void column_apart(const Taken &rows, int64_t at, vec<A> (&into)[Taken::sums],
                                                       Part part) {
        column(rows, at, into, part);
    }

    // The sums of one or two rows, n vectors each.
    template <int n, int sums, class Part>
    inline __attribute__((always_inline)) void write(S *out, const vec<A> (&sum)[sums], Part part) const {
#pragma GCC unroll 2
        for (int k = 0; k < sums / n; ++k)
            put_several<n, Join::rounds>(out + k * W.count * C, sum + k * n, part, past_);
    }

    const S *x_;
    S *y_;
    const vg_run *run_;
};

template <class S, class Join>
int64_t sweep_scratch(const vg_pool *p, int32_t threads) {
    return SweepPlan(p, Sweep<S, Join>::elements, nullptr).scratch_bytes(threads);
}

template <class S, class Join>
int32_t sweep(const vg_pool *p, const S *x, S *y, const vg_run *run) {
    const Sweep<S, Join> sweep(p, x, y, run);
    const int32_t threads = sweep.useful_threads(run->threads);
    const int64_t scratch = sweep.scratch(threads);
    return each_block(sweep.blocks(threads), threads, run, [&](const Blocks::Block &b, int worker) {
        sweep.block(b, static_cast<sum_t<S> *>(run->scratch) + worker * scratch);
    });
}

}  // namespace VG_NAMESPACE::pool
