// SPDX-License-Identifier: Apache-2.0
// Index maps of correlations, and slabs: the input cells that a block of output cells needs, copied into scratch
// memory, widened, zero-padded, channels in blocks of a fixed size.
#pragma once

#include "conv_common.hpp"

namespace VG_NAMESPACE::conv {

struct Range {
    int64_t from, to;
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
};

inline Range Line::valid(int64_t from, int64_t to) const {
    if (taps == 0 || from >= to) return {0, 0};
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

    Line line(int a, int64_t phase) const;
    int64_t taps() const { return window[0] * window[1] * window[2]; }
};

inline int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Cells i = q*stride + phase of the input gradient receive from the windows o = (i + before - t*dilation) / stride:
// only the taps t in one residue class divide evenly, and within it o moves with q.
inline Line transposed_line(const vg_axis &a, int64_t phase) {
    const int64_t d = common_divisor(a.stride, a.dilation);
    Line l = {pieces(a.size - phase, a.stride), a.stride, phase, 0, 0, a.stride / d, a.out, 1, 0, -(a.dilation / d)};
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

// How the input cells of a block lie in the slab along one axis: `runs` runs of `length` cells that are `pace` apart,
// the first at `start`, the next `gap` further on. With one run per residue of the pace, neighbouring output cells
// always find their inputs side by side; where that would store many unused cells, there is one run per tap instead.
struct Slots {
    int64_t runs, length, start, gap;
    bool per_tap;

    int64_t count() const { return runs * length; }
    int64_t cell(const Line &l, int64_t slot) const { return start + slot / length * gap + slot % length * l.pace; }
    // The slot of tap j of the block's first output cell.
    int64_t of_tap(const Line &l, int64_t j) const {
        if (per_tap) return j * length;
        const int64_t at = l.shift + j * l.slide - l.low_shift();
        return at % l.pace * length + at / l.pace;
    }
};

inline Slots slots_of(const Line &l, int64_t from, int64_t count) {
    if (l.taps == 0) return {0, 0, 0, 0, true};
    const int64_t residues = least(l.pace, l.span()), length = count + (l.span() - 1) / l.pace;
    if (residues * length > l.taps * count) return {l.taps, count, from * l.pace + l.shift, l.slide, true};
    return {residues, length, from * l.pace + l.low_shift(), 1, false};
}

// A block of output cells, the input cells that it needs, and how these lie in the slab.
struct Block {
    Line line[3];
    Slots slots[3];
    int64_t from[3], count[3];
    int64_t slot[4];  // distances in the slab: depth, height, width, block of channels

    // False if the block is empty.
    bool set(int a, const Line &l, int64_t first, int64_t limit) {
        line[a] = l;
        from[a] = first;
        count[a] = least(limit, l.count - first);
        if (count[a] <= 0) return false;
        slots[a] = slots_of(l, first, count[a]);
        return true;
    }
    void lay_out(int64_t spacing) {
        slot[2] = spacing;
        for (int a = 2; a >= 0; --a) slot[a == 0 ? 3 : a - 1] = slots[a].count() * slot[a];
    }
    // How far the data of each tap of the block's first window lies from the start of the slab.
    void tabulate(int a, int64_t *distance) const {
        for (int64_t j = 0; j < line[a].taps; ++j) distance[j] = slots[a].of_tap(line[a], j) * slot[a];
    }
};

// Copies `voxels` voxels of `channels` channels into channel blocks that lie `block` apart.
template <int spacing, class S>
void copy_voxels(const S *from, int64_t voxel, int64_t channel, int64_t voxels, int64_t channels, sum_t<S> *to,
                 int64_t block) {
    using A = sum_t<S>;
    for (int64_t c0 = 0; c0 < channels; c0 += spacing, to += block) {
        const int64_t here = least(spacing, channels - c0);
        const S *x = from + c0 * channel;
        int64_t i = 0;
        if (channel == 1 && here == 16) {
            for (; i < voxels; ++i) {
#pragma GCC unroll 16
                for (int c = 0; c < 16; c += lanes<A>) store(to + i * spacing + c, load(x + i * voxel + c));
            }
        } else if (channel != 1 && voxel == 1 && here == 16) {
            for (; i + lanes<A> <= voxels; i += lanes<A>)
                for (int c = 0; c < 16; c += lanes<A>) transpose(x + i + c * channel, channel, to + i * spacing + c, spacing);
        } else if (spacing == 1 && voxel == 1) {
            for (; i + lanes<A> <= voxels; i += lanes<A>) store(to + i, load(x + i));
        }
        for (; i < voxels; ++i)
            for (int64_t c = 0; c < here; ++c) to[i * spacing + c] = widen(x[i * voxel + c * channel]);
    }
}

// Fills slabs from a tensor.
template <class S>
class Slab {
public:
    using A = sum_t<S>;
    Slab(const Block &b, const Strides &strides, A *to) : b(b), strides(strides), spacing(b.slot[2]), to(to) {}

    // Brings the cells of a block in. `x` points to the first wanted channel of the image. Lines beyond the input are
    // left alone, as no kernel that skips taps by bounds reads them; others ask to have them cleared.
    void fill(const S *x, int64_t channels, bool clear_depth, bool clear_height) {
        for (int64_t sd = 0; sd < b.slots[0].count(); ++sd) {
            const int64_t d = b.slots[0].cell(b.line[0], sd);
            const bool inside = d >= 0 && d < b.line[0].size;
            if (!inside && !clear_depth) continue;
            for (int64_t sh = 0; sh < b.slots[1].count(); ++sh) {
                const int64_t h = b.slots[1].cell(b.line[1], sh);
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
            const int64_t begin = clamp(ceil_div(-cell, l.pace), 0, s.length);
            const int64_t end = clamp(ceil_div(l.size - cell, l.pace), begin, s.length);
            clear(line, begin, channels);
            clear(line + end * spacing, s.length - end, channels);
            if (begin < end) copy(x + (cell + begin * l.pace) * strides.space[2], end - begin, channels, line + begin * spacing);
        }
    }

    void clear(A *line, int64_t voxels, int64_t channels) {
        if (voxels == 0) return;
        for (int64_t c = 0; c < channels; c += spacing, line += b.slot[3]) std::memset(line, 0, voxels * spacing * sizeof(A));
    }

    void copy(const S *x, int64_t voxels, int64_t channels, A *line) {
        const int64_t voxel = b.line[2].pace * strides.space[2];
        if (spacing == 1) copy_voxels<1>(x, voxel, strides.channel, voxels, channels, line, b.slot[3]);
        else if (spacing == 4) copy_voxels<4>(x, voxel, strides.channel, voxels, channels, line, b.slot[3]);
        else copy_voxels<16>(x, voxel, strides.channel, voxels, channels, line, b.slot[3]);
    }

    const Block &b;
    const Strides &strides;
    const int64_t spacing;
    A *to;
};

}  // namespace VG_NAMESPACE::conv
