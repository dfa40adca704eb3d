// SPDX-License-Identifier: Apache-2.0
// dfilter = the transpose of conv3d in the filter, applied to dy.
//
// A task owns some input and output channels of the filter, all taps, and a segment of the output voxels. It walks its
// segment in blocks, and these in slices small enough for the second cache, brings x and dy of a slice into its scratch
// memory or reads them where they are, and adds the outer products to sums of its own; meanwhile, memory is asked for the
// next slice. Where there are several segments, a second pass adds their sums in order.
#pragma once

#include "conv3d.hpp"
#include "conv_outer.hpp"

namespace VG_NAMESPACE::conv {

// How a filter gradient is cut up. It depends on the problem alone, so that the order of every sum does.
struct FilterPlan : Cut {
    int64_t spacing;                      // of the input channels in the slab
    bool in_place;                        // x and dy are read where they are
    bool input_in_place;                  // x is
    bool gradient_in_place;               // dy is
    bool swapped;                         // few output channels: lanes run along the input channels instead
    int64_t in_part, in_parts;            // input channels of a task
    int64_t vectors, out_part, out_parts; // vectors of output channels: of a group, of a task
    int64_t pair;                         // of a tile
    int64_t slice;                        // depth of a block's slices
    int64_t rows;                         // rows of the sums of a task: taps x input channels
    int64_t chunks, blocks, segments;     // tasks of a segment; blocks of the volume
    int64_t slab, gradient, sums;         // elements of scratch
    double work;
};

// Whether the second cache is near enough for the tiles of adjacent channels: with vectors of 64 bytes they do so much with
// what they read that it is, and then larger slices and data read in place cost less than they bring.
inline constexpr bool streams = VG_VECTOR_BYTES == 64;
// dy of one slice and vector pair: the more voxels, the less often their sums leave the registers. With few channels, there
// are so many taps to a voxel that the second cache will do for all.
inline constexpr int64_t near_bytes = (streams ? 96 : 24) << 10, far_bytes = 96 << 10;
// Between neighbouring voxels: data that lies wider apart does not use all of the first cache.
inline constexpr int64_t near_voxels_bytes = 256;

// With swapped roles, the vectors of one tile of sixteen input channels.
template <class A>
inline constexpr int swapped_vectors = 16 / lanes<A> < most_vectors ? 16 / lanes<A> : most_vectors;

// Whether all taps of a few input channels are listed.
inline bool lists_rows(const Correlation &c) { return would_take(c.how, Path::listed, c.in <= few_channels, c.in <= 4); }

// Whether lanes run along the input channels, because there are few output channels.
template <class A>
bool can_swap_roles(const Correlation &c) {
    return !lists_rows(c) && c.out < lanes<A> && c.out <= most_outer_rows<Rows::adjacent>(swapped_vectors<A>);
}
template <class A>
bool prefers_swapped(const Correlation &c) {
    const double along_in = filled(c.in, 16) * (c.out < 4 ? c.out / 4.0 : 1);
    return c.in > 4 && along_in * lanes<A> > 1.1 * c.out;
}

// Whether x had better not be copied: with strides values are used fewer times, and with few voxels it matters less where
// they lie. Where tiles stream, nothing is gained by copying voxels that are neighbours already.
template <class A>
bool reads_input_in_place(const Correlation &c, bool few) {
    const int64_t stride = c.axis[2].stride, uses = c.taps() * pieces(c.out, lanes<A>);
    if (c.taps() == 1) return true;
    if (!streams) return stride > 1;
    const bool near = stride * c.from.space[2] * static_cast<int64_t>(sizeof(A)) <= near_voxels_bytes;
    return near || (stride > 1 && (few || uses < 10 * c.steps()));
}

// Channels are split among tasks first, as that needs no second pass, but not so far that copying dominates; and a task's
// sums should stay in the cache. With dy in place only x is copied, and once if the output channels stay together: these
// are split only if there are so few voxels that a second pass is worse.
inline void split_channels(const Correlation &c, FilterPlan &p, int64_t size, bool few) {
    constexpr int64_t sums_bytes = 512 << 10;
    const int64_t taps = c.taps(), lane = pieces(c.out, p.vectors), enough = c.how.grain > 0 ? INT64_MAX : enough_tasks;
    const bool once = p.gradient_in_place && p.spacing == 16;
    const int64_t outs = cut_to(c.how, taps >= 8 ? 32 : 128), ins = c.how.grain > 0 || (taps >= 8 && once) ? 16 : outs;
    p.in_part = c.in, p.out_part = p.vectors;
    for (;;) {
        const int64_t tasks = c.groups * pieces(c.in, p.in_part) * pieces(p.vectors, p.out_part);
        const bool fits = taps * p.in_part * p.out_part * lane * size <= sums_bytes;
        if (fits && tasks >= enough) break;
        const bool can_in = p.in_part > ins, together = once && fits && !few;
        const bool can_out = p.out_part > 2 && p.out_part * lane > outs && !together;
        if (!can_in && !can_out) break;
        if (can_in && (!can_out || once || p.in_part >= p.out_part * lane)) p.in_part = pieces(p.in_part, 32) * 16;
        else p.out_part = pieces(p.out_part, 4) * 2;
    }
}

// Blocks are worked off in slices of some depth that stay in the cache; a deeper block brings in less of its surroundings.
inline void deepen(const Correlation &c, int64_t slice, int64_t cell, FilterPlan &p) {
    p.slice = cut_to(c.how, most(1, slice / most(1, p.block[1] * p.block[2])));
    int64_t deeper[3] = {p.block[0], p.block[1], p.block[2]};
    const int64_t all = c.line(0, 0).count, depth = c.how.grain > 0 ? least(all, 4 * c.how.grain) : all;
    while (deeper[0] < depth && slab_cells(c, deeper, false) * cell <= slab_bytes) p.block[0] = deeper[0]++;
    if (deeper[0] == depth && slab_cells(c, deeper, false) * cell <= slab_bytes) p.block[0] = depth;
    p.grid[0] = pieces(all, p.block[0]);
    if (p.grid[0]) p.block[0] = pieces(all, p.grid[0]);
}

template <class S>
FilterPlan filter_plan(const Correlation &c) {
    using A = sum_t<S>;
    FilterPlan p = {};
    const int64_t size = sizeof(A), taps = c.taps();
    p.segments = 1;
    if (c.groups * c.in * c.out * taps == 0) return p;  // no chunks
    note(c.how, Path::listed, c.in <= few_channels, c.in <= 4, lists_rows(c));
    p.spacing = lists_rows(c) ? c.in : 16;
    p.vectors = pieces(c.out, lanes<A>);
    double voxels = c.batch;
    for (int a = 0; a < 3; ++a) voxels *= c.axis[a].out;
    p.work = voxels * c.groups * c.in * c.out * taps;
    const bool few = voxels <= few_voxels;
    const bool input = sizeof(S) == sizeof(A) && c.from.channel == 1;
    const bool gradient = sizeof(S) == sizeof(A) && c.to.channel == 1 && c.out % lanes<A> == 0;
    p.swapped = takes(c.how, Path::swapped, can_swap_roles<A>(c), prefers_swapped<A>(c));
    // With a single tap every value is used too few times to be worth copying.
    p.in_place = takes(c.how, Path::direct, taps == 1 && input && gradient && !p.swapped);
    p.input_in_place = takes(c.how, Path::input_in_place, input && p.spacing == 16 && !p.in_place && !p.swapped,
                             reads_input_in_place<A>(c, few));
    // Few rows of sums use each value of dy if there are few channels; else, tiles read it as fast from where it is.
    p.gradient_in_place = takes(c.how, Path::gradient_in_place, gradient && !p.swapped,
                                p.spacing == 16 ? streams : c.in * taps <= 2 * most_voxels(1));
    const bool three = VG_VECTOR_BYTES == 32 && takes(c.how, Path::three, p.vectors >= 3, p.vectors == 3);
    p.pair = three ? 3 : least(p.vectors, most_vectors);

    split_channels(c, p, size, few);
    p.in_parts = pieces(c.in, p.in_part);
    p.out_parts = pieces(p.vectors, p.out_part);
    p.chunks = c.groups * p.in_parts * p.out_parts;

    const int64_t cell = p.spacing * pieces(p.in_part, p.spacing) * size;
    const int64_t slice = (p.spacing < 16 ? far_bytes : near_bytes) / (p.pair * lanes<A> * size);
    // Taps in the padding are left out for all of a slice, so slices of a single plane leave out most. But then blocks are
    // large, and there should be several for each thread.
    const auto cut = [&](bool flat) {
        choose_block(c, {1, 1, 1}, static_cast<double>(slice), cell, p, flat);
        deepen(c, slice, cell, p);
        p.blocks = c.batch * p.grid[0] * p.grid[1] * p.grid[2];
        return p.blocks * p.chunks >= enough_tasks / 2;
    };
    const bool many = p.spacing < 16 && cut(true);
    if (!takes(c.how, Path::flat_blocks, p.spacing < 16, many)) cut(false);
    note_runs(c, p, !p.in_place && !p.input_in_place);
    p.rows = taps * p.in_part;
    p.sums = p.swapped ? taps * pieces(p.in_part, 16) * 16 * c.out : p.rows * p.out_part * lanes<A>;
    p.segments = clamp(enough_tasks / p.chunks, 1, most(1, p.blocks));
    while (p.segments > 1 && p.segments * p.chunks * p.sums * size > (4 << 20)) --p.segments;
    const bool several = takes(c.how, Path::segments, p.blocks > 1, p.segments > 1);
    p.segments = several && is_forced(c.how, Path::segments) ? least(p.blocks, enough_tasks) : several ? p.segments : 1;
    p.slab = slab_cells(c, p.block, false) * p.spacing * pieces(p.in_part, p.spacing);
    p.gradient = p.gradient_in_place ? 0 : least(p.slice, p.block[0]) * p.block[1] * p.block[2] * p.out_part * lanes<A>;
    return p;
}

template <class A>
struct FilterWorkspace {
    A *slab, *gradient, *sums;
    int64_t *taps[3], *rows;

    FilterWorkspace(Arena &arena, const Correlation &c, const FilterPlan &p)
        : slab(arena.take<A>(p.slab)), gradient(arena.take<A>(p.gradient)),
          sums(arena.take<A>(p.segments == 1 ? p.sums : 0)) {
        for (int a = 0; a < 3; ++a) taps[a] = arena.take<int64_t>(c.window[a]);
        rows = arena.take<int64_t>(p.spacing < 16 ? p.rows : 0);
    }
};

template <class S>
class FilterGradient {
    struct Part {
        int64_t group, in, ins, vector, vectors;
    };
    // Some depths of a block.
    struct Slice {
        int64_t at = 0, end = 0;  // the block, and the end of the segment
        Block block = {};
        int64_t image = 0;
        Range depths = {};

        int64_t depth() const { return depths.to - depths.from; }
        int64_t voxels() const { return depth() * block.count[1] * block.count[2]; }
        // How many planes of its slab a block needs up to some depth.
        int64_t planes(int64_t depth) const {
            const Slots &s = block.slots[0];
            const Line &l = block.line[0];
            if (depth == block.from[0]) return 0;
            return s.per_tap ? s.count() : least(s.count(), (depth - 1 - block.from[0]) * l.pace + l.span());
        }
    };

public:
    using A = sum_t<S>;
    FilterGradient(const Correlation &c, const FilterPlan &p, const S *x, const S *dy, S *dw, const vg_run *run)
        : c(c), p(p), x(x), dy(dy), dw(dw), run(run), asks_input(is_asked_for(c.from)), asks_gradient(is_asked_for(c.to)) {}

    // Adds up one segment of the voxels for one chunk of the filter.
    void sum(int64_t segment, int64_t chunk, FilterWorkspace<A> &space, A *sums) const {
        const Part part = part_of(chunk);
        std::memset(sums, 0, p.sums * sizeof(A));
        Slice now = {segment * p.blocks / p.segments, (segment + 1) * p.blocks / p.segments};
        for (bool more = enter(now); more; more = advance(now)) {
            if (run->cancel && *run->cancel) return;
            const S *from = image(now, part);
            if (p.in_place) {
                add_in_place(now, part, from, sums);
                continue;
            }
            bring(now, part, from, space);
            Ahead wanted[2];
            look_ahead(now, part, wanted);
            for (int64_t v = 0; v < part.vectors; v += p.pair) {
                const int64_t vectors = least(p.pair, part.vectors - v);
                A *to = sums + v * lanes<A> * p.rows;
                const A *gradient = p.gradient_in_place ? reinterpret_cast<const A *>(gradient_at(now, part, v))
                                                        : space.gradient + v * lanes<A> * now.voxels();
                if (p.spacing < 16) add_listed(now, part, vectors, gradient, space, to);
                else add_channels(now, part, vectors, reinterpret_cast<const A *>(from), gradient, wanted, space, to);
            }
        }
    }

    // Adds the segments' sums in order and writes one tap of a chunk. `next` is the distance between segments. Returns
    // whether the results are finite.
    bool finish(int64_t chunk, int64_t tap, const A *sums, int64_t next) const {
        const Part part = part_of(chunk);
        if (p.swapped) return finish_swapped(part, tap, sums, next);
        vec<A> zero = {};
        for (int64_t i = 0; i < part.ins; ++i) {
            S *to = dw + (tap * c.in + part.in + i) * c.w_in + part.group * c.out + part.vector * lanes<A>;
            const int64_t outs = least(part.vectors * lanes<A>, c.out - part.vector * lanes<A>);
            for (int64_t v = 0; v < part.vectors; ++v) {
                const int64_t pair = v / p.pair * p.pair, width = least(p.pair, part.vectors - pair);
                const A *from = sums + pair * lanes<A> * p.rows + ((tap * part.ins + i) * width + v - pair) * lanes<A>;
                vec<A> total = load(from);
                for (int64_t s = 1; s < p.segments; ++s) total += load(from + s * next);
                zero += total * A(0);
                const int64_t here = least(lanes<A>, outs - v * lanes<A>);
                if (here == lanes<A>) store(to + v * lanes<A>, total);
                else store_part(to + v * lanes<A>, total, static_cast<int>(here));
            }
        }
        return all_finite(reinterpret_cast<const A *>(&zero), lanes<A>);
    }

private:
    // Finds the first slice of a block, or of the next that has any; false if there is none.
    bool enter(Slice &s) const {
        for (; s.at < s.end; ++s.at) {
            Block &b = s.block;
            int64_t rest = s.at;
            bool any = true;
            for (int a = 2; a >= 0; --a) {
                any = b.set(c.how, a, c.line(a, 0), rest % p.grid[a] * p.block[a], p.block[a], false) && any;
                rest /= p.grid[a];
            }
            if (!any) continue;
            b.lay_out(p.spacing);
            s.image = rest;
            s.depths = {b.from[0], b.from[0] + least(p.slice, b.count[0])};
            return true;
        }
        return false;
    }

    // Turns to the next slice; false after the last one.
    bool advance(Slice &s) const {
        const int64_t end = s.block.from[0] + s.block.count[0];
        if (s.depths.to == end) return ++s.at, enter(s);
        s.depths = {s.depths.to, least(s.depths.to + p.slice, end)};
        return true;
    }

    const S *image(const Slice &s, const Part &part) const {
        return x + s.image * c.from.batch + (part.group * c.in + part.in) * c.from.channel;
    }

    // Brings what is not read in place into scratch memory. Of x, the slice before has brought in a part.
    void bring(const Slice &s, const Part &part, const S *from, FilterWorkspace<A> &space) const {
        const Block &b = s.block;
        for (int a = 0; a < 3; ++a) {
            if (p.input_in_place) b.tabulate_in_memory(a, c.from.space[a], space.taps[a]);
            else b.tabulate(a, space.taps[a]);
        }
        const Range planes = {s.planes(s.depths.from), s.planes(s.depths.to)};
        if (!p.input_in_place) Slab<S>(b, c.from, space.slab).fill(from, part.ins, p.spacing < 16, p.spacing < 16, planes);
        if (!p.gradient_in_place) bring_gradient(s, part, space.gradient);
    }

    // Whether to ask for a tensor before it is wanted: not if the caches hold all of it.
    bool is_asked_for(const Strides &strides) const {
        constexpr int64_t large = 8 << 20;
        return takes(c.how, Path::asks, strides.channel == 1 && p.spacing == 16 && !p.in_place,
                     c.batch * strides.batch * static_cast<int64_t>(sizeof(S)) >= large);
    }

    // Finds what the next slice will want. A line of voxels asks for its share, twice as much as would do, as some taps
    // meet fewer lines.
    void look_ahead(const Slice &s, const Part &part, Ahead (&wanted)[2]) const {
        if (!asks_input && !asks_gradient) return;
        Slice next = s;
        if (!advance(next)) return;
        if (asks_input) wanted[0] = input_of(next, part);
        if (asks_gradient) wanted[1] = gradient_of(next, part);
        const int64_t lines = pieces(part.ins, 8) * c.taps() * pieces(part.vectors, p.pair) * s.depth() * s.block.count[1];
        for (Ahead &one : wanted) one.share(pieces(2 * one.lines(), lines));
    }

    // The x that a slice wants, less what the one before has brought in, and its dy.
    Ahead input_of(const Slice &s, const Part &part) const {
        const S *at = image(s, part);
        int64_t count[3];
        for (int a = 0; a < 3; ++a) {
            const Line &l = s.block.line[a];
            const Range q = a ? Range{s.block.from[a], s.block.from[a] + s.block.count[a]} : s.depths;
            const int64_t known = q.from > s.block.from[a] ? most(0, l.span() - l.pace) : 0;
            const int64_t low = clamp(q.from * l.pace + l.low_shift() + known, 0, l.size);
            count[a] = clamp((q.to - 1) * l.pace + l.low_shift() + l.span(), low, l.size) - low;
            at += low * c.from.space[a];
        }
        return {at, count, c.from.space, part.ins};
    }
    Ahead gradient_of(const Slice &s, const Part &part) const {
        return {gradient_at(s, part, 0), {s.depth(), s.block.count[1], s.block.count[2]}, c.to.space,
                least(part.vectors * lanes<A>, c.out - part.vector * lanes<A>)};
    }

    // The sums of swapped roles are [tap][sixteen of inputs][output][input].
    bool finish_swapped(const Part &part, int64_t tap, const A *sums, int64_t next) const {
        A zero = 0;
        for (int64_t i = 0; i < part.ins; ++i) {
            const A *from = sums + ((tap * pieces(part.ins, 16) + i / 16) * c.out) * 16 + i % 16;
            for (int64_t o = 0; o < c.out; ++o) {
                A total = from[o * 16];
                for (int64_t s = 1; s < p.segments; ++s) total += from[o * 16 + s * next];
                zero += total * A(0);
                narrow(total, dw + (tap * c.in + part.in + i) * c.w_in + part.group * c.out + o);
            }
        }
        return zero == 0;
    }

    Part part_of(int64_t chunk) const {
        Part t;
        t.vector = chunk % p.out_parts * p.out_part;
        t.vectors = least(p.out_part, p.vectors - t.vector);
        t.in = chunk / p.out_parts % p.in_parts * p.in_part;
        t.ins = least(p.in_part, c.in - t.in);
        t.group = chunk / p.out_parts / p.in_parts;
        return t;
    }

    // Where dy of a slice begins in the tensor.
    const S *gradient_at(const Slice &s, const Part &part, int64_t v) const {
        const Block &b = s.block;
        return dy + s.image * c.to.batch + (part.group * c.out + (part.vector + v) * lanes<A>) * c.to.channel +
               s.depths.from * c.to.space[0] + b.from[1] * c.to.space[1] + b.from[2] * c.to.space[2];
    }

    // dy of a slice as [vector pair][voxel][lane], zero beyond the last channel.
    void bring_gradient(const Slice &s, const Part &part, A *to) const {
        const Block &b = s.block;
        for (int64_t v = 0; v < part.vectors; v += p.pair) {
            const int64_t width = p.swapped ? c.out : least(p.pair, part.vectors - v) * lanes<A>;
            const int64_t outs = least(width, c.out - (part.vector + v) * lanes<A>);
            const S *from = gradient_at(s, part, v);
            for (int64_t d = 0; d < s.depth(); ++d) {
                for (int64_t h = 0; h < b.count[1]; ++h, to += b.count[2] * width)
                    bring_line(from + d * c.to.space[0] + h * c.to.space[1], b.count[2], outs, width, to);
            }
        }
    }

    void bring_line(const S *from, int64_t voxels, int64_t channels, int64_t width, A *to) const {
        constexpr int n = lanes<A>;
        const int64_t voxel = c.to.space[2], channel = c.to.channel;
        if (channels < width && (channel != 1 || width % n)) std::memset(to, 0, voxels * width * sizeof(A));
        for (int64_t o = 0; o < channels; o += n) {
            int64_t i = 0;
            const int64_t here = least(n, channels - o);
            if (here == n && channel == 1) {
                for (; i < voxels; ++i) {
                    __builtin_prefetch(from + i * voxel + o + c.to.space[1]);
                    store(to + i * width + o, load(from + i * voxel + o));
                }
            } else if (channel == 1 && width % n == 0) {
                for (; i < voxels; ++i) store(to + i * width + o, load_part(from + i * voxel + o, static_cast<int>(here)));
            } else if (here == n && voxel == 1) {
                for (; i + n <= voxels; i += n) transpose(from + i + o * channel, channel, to + i * width + o, width);
            }
            for (; i < voxels; ++i)
                for (int64_t k = o; k < o + here; ++k) to[i * width + k] = widen(from[i * voxel + k * channel]);
        }
    }

    // All taps of sixteens of channels: per tap, the box of voxels that meets data.
    void add_channels(const Slice &s, const Part &part, int64_t vectors, const A *from, const A *gradient, Ahead *next,
                      FilterWorkspace<A> &space, A *sums) const {
        const Block &b = s.block;
        OuterInput<A> in = box_of(s, p.swapped ? c.out : vectors * lanes<A>);
        if (!p.input_in_place) from = space.slab;
        for (int a = 0; p.input_in_place && a < 3; ++a) {
            in.x_step[a] = b.line[a].pace * c.from.space[a];
            from += b.start_in_memory(a, c.from.space[a]);
        }
        in.next = next;
        for (int64_t c0 = 0; c0 < part.ins; c0 += 16) {
            const int64_t channels = least(16, part.ins - c0);
            for (int64_t tap = 0; tap < c.taps(); ++tap) {
                const int64_t t[3] = {tap / c.window[2] / c.window[1], tap / c.window[2] % c.window[1], tap % c.window[2]};
                in.x = from + (p.input_in_place ? c0 : c0 / 16 * b.slot[3]), in.dy = gradient;
                bool any = true;
                for (int a = 0; a < 3; ++a) {
                    const Range all = a == 0 ? s.depths : Range{b.from[a], b.from[a] + b.count[a]};
                    const Range q = b.line[a].cells(t[a], all.from, all.to);
                    in.count[a] = q.to - q.from;
                    any = any && q.to > q.from;
                    in.x += space.taps[a][t[a]] + (q.from - b.from[a]) * in.x_step[a];
                    in.dy += (q.from - all.from) * in.dy_step[a];
                }
                if (!any) continue;
                A *to = sums + (tap * part.ins + c0) * vectors * lanes<A>;
                if (p.swapped) add_swapped(in, sums + (tap * pieces(part.ins, 16) + c0 / 16) * c.out * 16);
                else if (next[0].lines() + next[1].lines() > 0) add_rows<Rows::asking>(in, channels, vectors, to);
                else add_rows<Rows::adjacent>(in, channels, vectors, to);
            }
        }
    }

    // The box of all voxels of a slice, in the slab and in the gradient, where it is or as brought in.
    OuterInput<A> box_of(const Slice &s, int64_t width) const {
        OuterInput<A> in;
        in.count[0] = s.depth(), in.count[1] = s.block.count[1], in.count[2] = s.block.count[2];
        const int64_t packed[3] = {in.count[1] * in.count[2] * width, in.count[2] * width, width};
        for (int a = 0; a < 3; ++a) {
            in.x_step[a] = s.block.slot[a];
            in.dy_step[a] = p.gradient_in_place ? c.to.space[a] : packed[a];
        }
        return in;
    }

    // Adjacent channels, in tiles of nearly equal height.
    template <Rows kind>
    static void add_rows(OuterInput<A> in, int64_t channels, int64_t vectors, A *sums) {
        const int64_t rows = pieces(channels, pieces(channels, most_outer_rows<kind>(static_cast<int>(vectors))));
        for (int64_t r = 0; r < channels; r += rows, in.x += rows)
            outer_of<A, kind>(vectors, least(rows, channels - r))(in, sums + r * vectors * lanes<A>);
    }

    // Output channels are the rows and sixteen input channels the lanes; those beyond the last add to sums of no use.
    void add_swapped(const OuterInput<A> &in, A *sums) const {
        constexpr int vectors = swapped_vectors<A>;
        OuterInput<A> turned = in;
        turned.x = in.dy;
        for (int a = 0; a < 3; ++a) turned.x_step[a] = in.dy_step[a], turned.dy_step[a] = in.x_step[a];
        for (int v = 0; v < 16; v += vectors * lanes<A>) {
            turned.dy = in.x + v;
            A part[most_vectors * lanes<A> * lanes<A>] = {};
            outer_of<A, Rows::adjacent>(vectors, c.out)(turned, part);
            for (int64_t o = 0; o < c.out; ++o)
                for (int k = 0; k < vectors * lanes<A>; ++k) sums[o * 16 + v + k] += part[o * vectors * lanes<A> + k];
        }
    }

    // A single tap. It may have a stride or padding, which the index maps of the block take care of.
    void add_in_place(const Slice &s, const Part &part, const S *from, A *sums) const {
        const Block &b = s.block;
        const A *x0 = reinterpret_cast<const A *>(from), *dy0 = reinterpret_cast<const A *>(gradient_at(s, part, 0));
        OuterInput<A> in;
        for (int a = 0; a < 3; ++a) {
            const Range all = a == 0 ? s.depths : Range{b.from[a], b.from[a] + b.count[a]};
            const Range q = b.line[a].cells(0, all.from, all.to);
            if (q.to == q.from) return;
            in.count[a] = q.to - q.from;
            in.x_step[a] = b.line[a].pace * c.from.space[a];
            in.dy_step[a] = c.to.space[a];
            x0 += b.start_in_memory(a, c.from.space[a]) + (q.from - b.from[a]) * in.x_step[a];
            dy0 += (q.from - all.from) * in.dy_step[a];
        }
        for (int64_t v = 0; v < part.vectors; v += p.pair) {
            const int64_t vectors = least(p.pair, part.vectors - v);
            in.x = x0, in.dy = dy0 + v * lanes<A>;
            in.x_ahead = in.count[2] * in.x_step[2], in.dy_ahead = in.count[2] * in.dy_step[2];
            add_rows<Rows::in_memory>(in, part.ins, vectors, sums + v * p.rows * lanes<A>);
        }
    }

    // All taps of a few channels: each (tap, channel) is a row of its own; cells beyond the input are zero in the slab,
    // and taps for which the whole slice lies beyond it are left out.
    void add_listed(const Slice &s, const Part &part, int64_t vectors, const A *gradient, FilterWorkspace<A> &space,
                    A *sums) const {
        const Range taps = s.block.line[0].valid(s.depths.from, s.depths.to);
        int64_t m = 0;
        for (int64_t d = taps.from; d < taps.to; ++d)
            for (int64_t h = 0; h < c.window[1]; ++h)
                for (int64_t t = 0; t < c.window[2]; ++t)
                    for (int64_t i = 0; i < part.ins; ++i)
                        space.rows[m++] = space.taps[0][d] + space.taps[1][h] + space.taps[2][t] + i;
        if (m == 0) return;
        const int64_t width = vectors * lanes<A>, limit = most_outer_rows<Rows::listed>(static_cast<int>(vectors));
        const int64_t rows = pieces(m, pieces(m, limit));
        OuterInput<A> in = box_of(s, width);
        in.x = space.slab + (s.depths.from - s.block.from[0]) * in.x_step[0];
        in.dy = gradient;
        sums += taps.from * c.window[1] * c.window[2] * part.ins * width;
        for (int64_t r = 0; r < m; r += rows) {
            in.rows = space.rows + r;
            outer_of<A, Rows::listed>(vectors, least(rows, m - r))(in, sums + r * width);
        }
    }

    const Correlation &c;
    const FilterPlan &p;
    const S *x, *dy;
    S *dw;
    const vg_run *run;
    const bool asks_input, asks_gradient;
};

template <class S>
int64_t filter_scratch(const Correlation &c, int32_t threads) {
    using A = sum_t<S>;
    const FilterPlan p = filter_plan<S>(c);
    if (p.chunks == 0) return 0;
    Arena arena(nullptr);
    for (int32_t t = 0; t < threads; ++t) FilterWorkspace<A>(arena, c, p);
    if (p.segments > 1) arena.take<A>(p.segments * p.chunks * p.sums);
    return arena.used();
}

template <class S>
int32_t filter_gradient(const Correlation &c, const S *x, const S *dy, S *dw, const vg_run *run) {
    using A = sum_t<S>;
    const FilterPlan p = filter_plan<S>(c);
    if (p.chunks == 0) return VG_OK;
    Arena one(nullptr);
    FilterWorkspace<A>(one, c, p);
    char *scratch = static_cast<char *>(run->scratch);
    A *all = reinterpret_cast<A *>(scratch + run->threads * one.used());
    const FilterGradient<S> gradient(c, p, x, dy, dw, run);
    Finite result;
    const bool done = parallel(c.how, run, p.chunks * p.segments, p.work, [&](int64_t task, int worker) {
        Arena mine(scratch + worker * one.used());
        FilterWorkspace<A> space(mine, c, p);
        const int64_t segment = task / p.chunks, chunk = task % p.chunks;
        gradient.sum(segment, chunk, space, p.segments == 1 ? space.sums : all + task * p.sums);
        if (p.segments > 1) return;
        for (int64_t tap = 0; tap < c.taps(); ++tap) result.saw(gradient.finish(chunk, tap, space.sums, 0));
    });
    if (!done) return VG_CANCELLED;
    if (p.segments == 1) return result.status();
    const bool finished = parallel(c.how, run, p.chunks * c.taps(), p.segments * p.chunks * p.sums * 8.0, [&](int64_t task, int) {
        const A *sums = all + task / c.taps() * p.sums;
        result.saw(gradient.finish(task / c.taps(), task % c.taps(), sums, p.chunks * p.sums));
    });
    return finished ? result.status() : VG_CANCELLED;
}

// As for a correlation; a single tap is bound by memory.
template <class S, class A = sum_t<S>>
const vg::Kernels *filter_with_half_vectors(const Correlation &c) {
    if (c.out == 0) return nullptr;
    const bool swapped = would_take(c.how, Path::swapped, can_swap_roles<A>(c), prefers_swapped<A>(c));
    return with_half_vectors<A>(c.how, c.out, swapped ? filled(c.in, 16) : filled(c.out, lanes<A>), c.taps() > 1);
}

inline int64_t conv3d_filter_scratch(const vg_conv *p, int32_t threads) {
    return with_type<int64_t>(p->dtype, 0, [&](auto s) {
        using S = decltype(s);
        const Correlation c = forward_of(p);
        const vg::Kernels *half = filter_with_half_vectors<S>(c);
        return half ? half->conv3d_filter_scratch(p, threads) : filter_scratch<S>(c, threads);
    });
}

inline int32_t conv3d_filter(const vg_conv *p, const void *x, const void *dy, void *dw, const vg_run *run) {
    return with_type<int32_t>(p->dtype, VG_BAD_TYPE, [&](auto s) {
        using S = decltype(s);
        const Correlation c = forward_of(p);
        if (const vg::Kernels *half = filter_with_half_vectors<S>(c)) return half->conv3d_filter(p, x, dy, dw, run);
        return filter_gradient(c, static_cast<const S *>(x), static_cast<const S *>(dy), static_cast<S *>(dw), run);
    });
}

}  // namespace VG_NAMESPACE::conv
