// SPDX-License-Identifier: Apache-2.0
// Index maps of correlations, and slabs: the input cells that a block of output cells needs, copied into scratch
// memory, widened, zero-padded, channels in blocks of a fixed size or, where they are few, side by side.
#pragma once

#include "conv_common.hpp"

namespace VG_NAMESPACE::conv {

// So few that each tap of each is a term of its own.
inline constexpr int few_channels = 8;

struct Range {
    int64_t from, to;
    bool holds(int64_t v) const { return v >= from && v < to; }
    bool operator==(const Range &) const = default;
};

// One axis of a correlation, for one phase of the output cells. Output cell q*step + phase is the sum, over taps j,
// of filter tap (first + j*hop) times input cell q*pace + shift + j*slide.
struct Line {
    int64_t count;
    int64_t step, phase;
    int64_t taps, first, hop;
    int64_t size, pace, shift, slide;

    int64_t low_shift() const { return slide < 0 ? shift + (taps - 1) * slide : shift; }
    int64_t span() const { return taps ? (taps - 1) * (slide < 0 ? -slide : slide) + 1 : 0; }
    // The taps j for which some q in from..to-1 meets a cell of the input.
    Range valid(int64_t from, int64_t to) const;
    // The output cells whose taps all lie inside the input.
    Range inside() const { return {ceil_div(-low_shift(), pace), floor_div(size - low_shift() - span(), pace) + 1}; }
    // The output cells q in from..to-1 for which tap j meets a cell of the input.
    Range cells(int64_t j, int64_t from, int64_t to) const {
        const int64_t at = shift + j * slide, first = clamp(ceil_div(-at, pace), from, to);
        return {first, clamp(ceil_div(size - at, pace), first, to)};
    }
};

inline Range Line::valid(int64_t from, int64_t to) const {
    if (taps == 0 || from >= to) return {0, 0};
    if (from * pace + low_shift() >= 0 && (to - 1) * pace + low_shift() + span() <= size) return {0, taps};
    const int64_t low = -shift - (to - 1) * pace, high = size - shift - from * pace;  // low <= j*slide < high
    Range r = slide > 0 ? Range{ceil_div(low, slide), ceil_div(high, slide)}
                        : Range{floor_div(-high, -slide) + 1, floor_div(-low, -slide) + 1};
    r.from = clamp(r.from, 0, taps);
    r.to = clamp(r.to, r.from, taps);
    return r;
}

// A correlation of `in` with a filter to `out` channels, per group; all distances in elements.
struct Correlation {
    int64_t batch, groups, in, out;
    Strides from, to;
    int64_t window[3];
    int64_t w_tap, w_in, w_out, w_group;
    int64_t phases[3];
    vg_axis axis[3];
    bool transposed;
    bool one_slab[3];  // an axis of several phases has one slab for all of them
    vg_how how;

    Line line(int a, int64_t phase) const;
    int64_t taps() const { return window[0] * window[1] * window[2]; }
    int64_t steps() const { return axis[0].stride * axis[1].stride * axis[2].stride; }

    // All phases of an axis read nearly the same cells, so one slab serves them all. Not under dilation: then each
    // phase reads few cells, far apart, and has a slab of its own.
    bool shares(int a) const { return one_slab[a]; }
    void choose_slabs() {
        for (int a = 0; a < 3; ++a) one_slab[a] = takes(how, Path::one_slab, phases[a] > 1, axis[a].dilation == 1);
    }
    int64_t slabs(int a) const { return shares(a) ? 1 : phases[a]; }
    // The cells that a slab must hold, as the line of a fictitious correlation.
    Line cover(int a, int64_t slab) const;
};

inline int64_t common_divisor(int64_t a, int64_t b) {
    while (b > 1) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return b ? 1 : a;
}

// Cells i = q*stride + phase of the input gradient receive from the windows o = (i + before - t*dilation) / stride:
// only the taps t in one residue class divide evenly, and within it o moves with q.
inline Line transposed_line(const vg_axis &a, int64_t phase) {
    const int64_t d = common_divisor(a.stride, a.dilation);
    const int64_t hop = floor_div(a.stride, d), slide = -floor_div(a.dilation, d);
    Line l = {pieces(a.size - phase, a.stride), a.stride, phase, 0, 0, hop, a.out, 1, 0, slide};
    for (int64_t t = 0; t < least(a.window, l.hop); ++t) {
        const int64_t at = phase + a.before - t * a.dilation;
        if (floor_div(at, a.stride) * a.stride != at) continue;
        l.first = t;
        l.taps = pieces(a.window - t, l.hop);
        l.shift = floor_div(at, a.stride);
        break;
    }
    return l;
}

inline Line Correlation::line(int a, int64_t phase) const {
    const vg_axis &x = axis[a];
    if (transposed) return transposed_line(x, phase);
    return {x.out, 1, 0, x.window, 0, 1, x.size, x.stride, -x.before, x.dilation};
}

inline Line Correlation::cover(int a, int64_t slab) const {
    Line all = line(a, slab);
    if (!shares(a)) return all;
    int64_t low = 0, high = 0;  // shifts
    bool any = false;
    for (int64_t f = 0; f < phases[a]; ++f) {
        const Line l = line(a, f);
        if (l.taps == 0) continue;
        low = any ? least(low, l.low_shift()) : l.low_shift();
        high = any ? most(high, l.low_shift() + l.span()) : l.low_shift() + l.span();
        any = true;
    }
    all.taps = high - low, all.shift = low, all.slide = 1;
    return all;
}

// How the input cells of a block lie in the slab along one axis: `runs` runs of `length` cells that are `pace` apart,
// the first at `start`, the next `gap` further on. With one run per residue of the pace, neighbouring output cells
// always find their inputs side by side; where that would store many unused cells, there is one run per tap instead.
struct Slots {
    int64_t runs, length, start, gap, pace;
    int64_t low;  // the least shift
    bool per_tap;

    int64_t count() const { return runs * length; }
    int64_t cell(int64_t slot) const { return start + slot / length * gap + slot % length * pace; }
    // The slot of the i-th cell in the order of the tensor, in which memory is read fastest.
    int64_t in_order(int64_t i) const { return per_tap || runs == 1 ? i : i % runs * length + i / runs; }
    // The slot of tap j of the block's first output cell.
    int64_t of_tap(const Line &l, int64_t j) const {
        if (per_tap) return j * length;
        const int64_t at = l.shift + j * l.slide - low;
        return at % pace * length + at / pace;
    }
};

// `dense` keeps the cells in their order, in one run. Without strides and dilation that is so anyway, and only then may
// a slab serve lines of several phases.
inline Slots slots_of(const vg_how &how, const Line &l, int64_t from, int64_t count, bool dense) {
    if (l.taps == 0) return {0, 0, 0, 0, 1, 0, true};
    const int64_t start = from * l.pace + l.low_shift();
    if (dense) return {1, (count - 1) * l.pace + l.span(), start, 1, 1, l.low_shift(), false};
    const int64_t residues = least(l.pace, l.span()), length = count + (l.span() - 1) / l.pace;
    const bool apart = l.pace > 1 || l.slide > 1 || l.slide < -1;
    if (would_take(how, Path::per_tap, apart, residues * length > l.taps * count))
        return {l.taps, count, from * l.pace + l.shift, l.slide, l.pace, 0, true};
    return {residues, length, start, 1, l.pace, l.low_shift(), false};
}

// A block of output cells, the input cells that it needs, and how these lie in the slab.
struct Block {
    Line line[3];
    Slots slots[3];
    int64_t from[3], count[3], limit[3];
    int64_t slot[4];  // distances in the slab: depth, height, width, block of channels

    // Sets the cells that the slab holds along one axis; false if the block is empty.
    bool set(const vg_how &how, int a, const Line &cover, int64_t first, int64_t cells, bool dense) {
        from[a] = first;
        limit[a] = cells;
        if (!select(a, cover)) return false;
        slots[a] = slots_of(how, cover, first, count[a], dense);
        return true;
    }
    // Chooses among the lines that the slab covers; false if the block has none of its cells.
    bool select(int a, const Line &l) {
        line[a] = l;
        count[a] = least(limit[a], l.count - from[a]);
        return count[a] > 0;
    }
    void lay_out(int64_t spacing) {
        slot[2] = spacing;
        for (int a = 2; a >= 0; --a) slot[a == 0 ? 3 : a - 1] = slots[a].count() * slot[a];
    }
    // How far the data of each tap of the block's first window lies from the start of the slab.
    void tabulate(int a, int64_t *distance) const {
        for (int64_t j = 0; j < line[a].taps; ++j) distance[j] = slots[a].of_tap(line[a], j) * slot[a];
    }
    // The same in the tensor itself, whose cells lie `space` apart: from the first tap of the block's first window, and
    // where that one lies.
    void tabulate_in_memory(int a, int64_t space, int64_t *distance) const {
        for (int64_t j = 0; j < line[a].taps; ++j) distance[j] = j * line[a].slide * space;
    }
    int64_t start_in_memory(int a, int64_t space) const { return (from[a] * line[a].pace + line[a].shift) * space; }
};

// How the output cells of a phase are cut into blocks: cells of a block, number of blocks.
struct Cut {
    int64_t block[3], grid[3];
    bool dense;  // the cells of the width lie in the slab as they do in the tensor
};

// A slab and the filter of a pass share the second cache: 1 MiB where there is AVX-512, half of that elsewhere.
inline constexpr int64_t slab_bytes = (VG_VECTOR_BYTES == 64 ? 640 : 320) << 10, enough_tasks = 16;

// The largest number of cells in a slab.
inline int64_t slab_cells(const Correlation &c, const int64_t block[3], bool dense) {
    int64_t cells = 1;
    for (int a = 0; a < 3; ++a) {
        int64_t longest = 0;
        for (int64_t f = 0; f < c.slabs(a); ++f) {
            const Line l = c.cover(a, f);
            longest = most(longest, slots_of(c.how, l, 0, least(block[a], l.count), dense && a == 2).count());
        }
        cells *= longest;
    }
    return cells;
}

// Notes, for a block of this size, the axes that are copied run by run.
inline void note_runs(const Correlation &c, const Cut &cut, bool copied) {
    for (int a = 0; c.how.seen && a < 3; ++a) {
        const Line l = c.cover(a, 0);
        const bool apart = l.taps > 0 && (l.pace > 1 || l.slide > 1 || l.slide < -1) && !(cut.dense && a == 2);
        vg_how normal = {};
        const int64_t count = least(cut.block[a], l.count);
        const bool worth = apart && slots_of(normal, l, 0, count, false).per_tap;
        note(c.how, Path::per_tap, copied && apart, worth, copied && apart && slots_of(c.how, l, 0, count, false).per_tap);
    }
}

// Grows the block in the given steps until the slab is as large as the cache likes or the block has enough voxels:
// first along the width, then height and depth by turns, as long lines are copied fastest and cubes overlap least; a flat
// block grows along the depth last.
inline void choose_block(const Correlation &c, const int64_t (&step)[3], double voxels, int64_t bytes_per_cell, Cut &cut,
                         bool flat = false) {
    int64_t *b = cut.block, count[3];
    for (int a = 0; a < 3; ++a) b[a] = step[a], count[a] = c.line(a, 0).count;
    const auto fits = [&] {
        for (int a = 0; a < 3; ++a)
            if (b[a] > cut_to(c.how, b[a] / step[a]) * step[a]) return false;
        return static_cast<double>(b[0]) * b[1] * b[2] <= voxels &&
               slab_cells(c, b, cut.dense) * bytes_per_cell <= slab_bytes;
    };
    const auto grow = [&](int a) {
        if (b[a] >= count[a]) return false;
        b[a] += step[a];
        if (fits()) return true;
        b[a] -= step[a];
        return false;
    };
    // A line can have so many steps that trying them one by one would take longer than a small convolution.
    for (int64_t low = 1, high = pieces(count[2], step[2]); low < high;) {
        const int64_t middle = (low + high + 1) / 2;
        b[2] = middle * step[2];
        if (fits()) low = middle;
        else high = middle - 1;
        b[2] = low * step[2];
    }
    while (!flat && b[0] < b[1] ? grow(0) || grow(1) : grow(1) || grow(0)) {
    }
    for (int a = 0; a < 3; ++a) {
        cut.grid[a] = pieces(count[a], b[a]);
        if (cut.grid[a]) b[a] = pieces(pieces(count[a], cut.grid[a]), step[a]) * step[a];
        cut.grid[a] = pieces(count[a], b[a]);
    }
}

// All channels of voxels that have few, side by side. Their number is a constant of the code, as the loop is all there is.
template <int count, class S>
void copy_few(const S *from, int64_t voxel, int64_t channel, int64_t voxels, sum_t<S> *to) {
    for (int64_t i = 0; i < voxels; ++i) {
#pragma GCC unroll 8
        for (int c = 0; c < count; ++c) to[i * count + c] = widen(from[i * voxel + c * channel]);
    }
}

template <class S, int... i>
void copy_few(const S *from, int64_t voxel, int64_t channel, int64_t voxels, int64_t channels, sum_t<S> *to,
              int_list<i...>) {
    static constexpr decltype(&copy_few<1, S>) table[] = {copy_few<i + 1, S>...};
    table[channels - 1](from, voxel, channel, voxels, to);
}

// Numbers side by side.
template <class S>
void copy_run(const S *from, int64_t count, sum_t<S> *to) {
    constexpr int n = lanes<sum_t<S>>;
    int64_t i = 0;
    for (; i + n <= count; i += n) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = widen(from[i]);
}

// Copies `voxels` voxels of `channels` channels into channel blocks that lie `block` apart. `ahead` leads to what will
// be wanted next.
template <int spacing, class S>
void copy_voxels(const S *from, int64_t voxel, int64_t channel, int64_t voxels, int64_t channels, sum_t<S> *to,
                 int64_t block, int64_t ahead) {
    using A = sum_t<S>;
    int64_t c0 = 0;
    if (spacing == 16 && channel == 1) {  // voxel by voxel, to read memory in order
        const int64_t whole = channels / 16;
        for (int64_t i = 0; i < voxels; ++i) {
            for (int64_t k = 0; k < whole; ++k) {
                __builtin_prefetch(from + i * voxel + k * 16 + ahead);
#pragma GCC unroll 16
                for (int c = 0; c < 16; c += lanes<A>)
                    store(to + k * block + i * 16 + c, load(from + i * voxel + k * 16 + c));
            }
        }
        c0 = whole * 16, to += whole * block;
    }
    if (spacing == 1 && channel == 1) {  // voxels of adjacent channels into one plane per channel
        for (; c0 + lanes<A> <= channels; c0 += lanes<A>, to += lanes<A> * block) {
            int64_t i = 0;
            for (; i + lanes<A> <= voxels; i += lanes<A>) transpose(from + i * voxel + c0, voxel, to + i, block);
            for (; i < voxels; ++i)
                for (int64_t c = 0; c < lanes<A>; ++c) to[i + c * block] = widen(from[i * voxel + c0 + c]);
        }
    }
    for (; c0 < channels; c0 += spacing, to += block) {
        const int64_t here = least(spacing, channels - c0);
        const S *x = from + c0 * channel;
        int64_t i = 0;
        if (spacing == 16 && voxel == 1 && here == 16) {
            for (; i + lanes<A> <= voxels; i += lanes<A>)
                for (int c = 0; c < 16; c += lanes<A>)
                    transpose(x + i + c * channel, channel, to + i * spacing + c, spacing);
        } else if (spacing == 1 && voxel == 1) {
            for (; i + lanes<A> <= voxels; i += lanes<A>) store(to + i, load(x + i));
        }
#pragma GCC unroll 4
        for (; i < voxels; ++i)
            for (int64_t c = 0; c < here; ++c) to[i * spacing + c] = widen(x[i * voxel + c * channel]);
    }
}

// Fills slabs from a tensor. Few channels lie close together: then the spacing is their number.
template <class S>
class Slab {
public:
    using A = sum_t<S>;
    Slab(const Block &b, const Strides &strides, A *to) : b(b), strides(strides), spacing(b.slot[2]), to(to) {}

    // Brings the cells of a block in. `x` points to the first wanted channel of the image. Lines beyond the input are
    // left alone, as no kernel that skips taps by bounds reads them; others ask to have them cleared.
    void fill(const S *x, int64_t channels, bool clear_depth, bool clear_height) {
        fill(x, channels, clear_depth, clear_height, {0, b.slots[0].count()});
    }
    // The same for some planes, counted in the order of the tensor.
    __attribute__((noinline)) void fill(const S *x, int64_t channels, bool clear_depth, bool clear_height, Range planes) {
        for (int64_t i = planes.from; i < planes.to; ++i) {
            const int64_t sd = b.slots[0].in_order(i);
            const int64_t d = b.slots[0].cell(sd);
            const bool inside = d >= 0 && d < b.line[0].size;
            if (!inside && !clear_depth) continue;
            for (int64_t k = 0; k < b.slots[1].count(); ++k) {
                const int64_t sh = b.slots[1].in_order(k);
                const int64_t h = b.slots[1].cell(sh);
                A *line = to + sd * b.slot[0] + sh * b.slot[1];
                if (inside && h >= 0 && h < b.line[1].size) {
                    fill_line(x + d * strides.space[0] + h * strides.space[1], channels, line);
                } else if (clear_height) {
                    clear(line, b.slots[2].count(), channels);
                }
            }
        }
    }

private:
    void fill_line(const S *x, int64_t channels, A *line) {
        const Line &l = b.line[2];
        const Slots &s = b.slots[2];
        for (int64_t run = 0; run < s.runs; ++run, line += s.length * spacing) {
            const int64_t cell = s.start + run * s.gap;
            const int64_t begin = clamp(ceil_div(-cell, s.pace), 0, s.length);
            const int64_t end = clamp(ceil_div(l.size - cell, s.pace), begin, s.length);
            clear(line, begin, channels);
            clear(line + end * spacing, s.length - end, channels);
            if (begin >= end) continue;
            copy(x + (cell + begin * s.pace) * strides.space[2], end - begin, channels, line + begin * spacing);
        }
    }

    void clear(A *line, int64_t voxels, int64_t channels) {
        if (voxels == 0) return;
        for (int64_t c = 0; c < channels; c += spacing, line += b.slot[3])
            std::memset(line, 0, voxels * spacing * sizeof(A));
    }

    void copy(const S *x, int64_t voxels, int64_t channels, A *line) {
        const int64_t voxel = b.slots[2].pace * strides.space[2];
        const int64_t channel = strides.channel, row = strides.space[1];
        if (spacing == 16) copy_voxels<16>(x, voxel, channel, voxels, channels, line, b.slot[3], row);
        else if (spacing == 1) copy_voxels<1>(x, voxel, channel, voxels, channels, line, b.slot[3], row);
        else if (voxel == spacing && strides.channel == 1) copy_run(x, voxels * spacing, line);
        else copy_few(x, voxel, strides.channel, voxels, channels, line, int_range<few_channels>{});
    }

    const Block &b;
    const Strides &strides;
    const int64_t spacing;
    A *to;
};

}  // namespace VG_NAMESPACE::conv
