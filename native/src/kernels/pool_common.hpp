// SPDX-License-Identifier: Apache-2.0
// What the pools share: which cells a window takes, element types, and the split into tasks.
#pragma once

#include <algorithm>
#include <type_traits>

#include "../../include/voxgrad.h"
#include "../threads.hpp"
#include "number.hpp"

namespace VG_NAMESPACE::pool {

struct Range {
    int64_t lo, hi;
    int64_t size() const { return hi - lo; }
    bool operator==(const Range &other) const { return lo == other.lo && hi == other.hi; }
};

// One axis of a reduction: output o takes the source cells lo[o]..hi[o]-1 that exist. Forward that is a window and its
// cells, backward a cell and the windows over it.
struct Reach {
    int64_t cells, count;
    const int64_t *lo, *hi;

    Range at(int64_t o) const {
        const int64_t from = std::clamp<int64_t>(lo[o], 0, cells);
        return {from, std::clamp<int64_t>(hi[o], from, cells)};
    }
    // All the cells that some output of a range takes, and those between.
    Range at(Range outputs) const {
        Range all{cells, 0};
        for (int64_t o = outputs.lo; o < outputs.hi; ++o) {
            const Range one = at(o);
            if (one.size() > 0) all = {std::min(all.lo, one.lo), std::max(all.hi, one.hi)};
        }
        return all.lo < all.hi ? all : Range{0, 0};
    }
    int64_t longest() const {
        int64_t most = 0;
        for (int64_t o = 0; o < count; ++o) most = std::max(most, at(o).size());
        return most;
    }
    // How often the average source cell is read.
    double overlap() const {
        int64_t total = 0;
        for (int64_t o = 0; o < count; ++o) total += at(o).size();
        return static_cast<double>(total) / static_cast<double>(std::max<int64_t>(cells, 1));
    }
};
inline Reach cells_of(const vg_span &axis) { return {axis.size, axis.out, axis.lo, axis.hi}; }
inline Reach windows_of(const vg_span &axis) { return {axis.out, axis.size, axis.first, axis.last}; }

// The number of cells an average divides by along one axis: all of the window, also what lies outside the volume.
inline int64_t extent(const vg_span &axis, int64_t window) {
    return std::max<int64_t>(axis.hi[window] - axis.lo[window], 0);
}

// Windows at equal steps: window o takes start + o*step .. + taps - 1, cut at the ends of the axis. taps is 0 where the
// tables are not of this form.
struct Comb {
    int64_t start = 0, step = 0, taps = 0;
    int64_t at(int64_t o) const { return start + o * step; }
    // The windows that are not cut.
    Range inside(int64_t cells, int64_t windows) const {
        Range inner{0, 0};
        while (inner.lo < windows && at(inner.lo) < 0) ++inner.lo;
        inner.hi = inner.lo;
        while (inner.hi < windows && at(inner.hi) + taps <= cells) ++inner.hi;
        return inner;
    }
};

inline Comb comb_of(const vg_span &axis) {
    const Reach reach = cells_of(axis);
    const int64_t taps = reach.longest();
    int64_t full = 0;
    while (full < reach.count && reach.at(full).size() < taps) ++full;
    if (taps == 0 || full == reach.count) return {};
    Comb comb;
    if (full + 1 < reach.count) {
        comb.step = reach.at(full + 1).lo - reach.at(full).lo;
    } else if (full > 0) {
        comb.step = reach.at(full).hi - reach.at(full - 1).hi;
    } else {
        comb.step = taps;
    }
    if (comb.step < 1) return {};
    comb.start = reach.at(full).lo - full * comb.step;
    comb.taps = taps;
    for (int64_t o = 0; o < reach.count; ++o) {
        const int64_t from = std::clamp<int64_t>(comb.at(o), 0, reach.cells);
        if (!(reach.at(o) == Range{from, std::clamp<int64_t>(comb.at(o) + taps, from, reach.cells)})) return {};
    }
    return comb;
}

// Whether to treat cells x channels as one run in which windows start at every cell (most of them unwanted where the
// step is over 1), rather than each cell's channels as a run of its own, whose last vector may be mostly empty.
inline bool prefers_flat(const Comb &comb, int64_t channels, int lane_count) {
    if (comb.taps > 64) return false;
    const int64_t padded = (channels + lane_count - 1) / lane_count * lane_count;
    if (comb.step == 1) return padded != channels && channels < 8 * lane_count;
    return comb.step * channels * 5 < padded * 4;
}
inline bool takes_flat(const vg_pool *p, const Comb &comb, int lane_count) {
    return takes(p->how, Path::flat, comb.taps > 0, prefers_flat(comb, p->channels, lane_count));
}

// body(channels), with a number that the compiler knows where there are few: loops over so few channels unroll.
template <class Body>
inline __attribute__((always_inline)) void with_few(int64_t channels, Body &&body) {
    switch (channels) {
        case 1: return body(std::integral_constant<int64_t, 1>{});
        case 2: return body(std::integral_constant<int64_t, 2>{});
        case 3: return body(std::integral_constant<int64_t, 3>{});
        case 4: return body(std::integral_constant<int64_t, 4>{});
        default: return body(channels);
    }
}

// From cells side by side to cells at every step, with `gap` between them, and back. Not inlined, as they are long.
template <class T>
__attribute__((noinline)) void space_out(const T *from, T *to, int64_t cells, int64_t step, int64_t C, T gap) {
    if (C == 1 && step == 2) {
        for (int64_t o = 0; o + 1 < cells; ++o) to[2 * o] = from[o], to[2 * o + 1] = gap;
        to[2 * cells - 2] = from[cells - 1];
        return;
    }
    with_few(C, [&](auto channels) {
        for (int64_t o = 0; o < cells; ++o)
            for (int64_t c = 0; c < channels; ++c) to[o * step * channels + c] = from[o * channels + c];
    });
}
template <class T>
__attribute__((noinline)) void close_up(const T *from, T *to, int64_t cells, int64_t step, int64_t C) {
    if (C == 1 && step == 2) {
        for (int64_t o = 0; o < cells; ++o) to[o] = from[2 * o];
        return;
    }
    with_few(C, [&](auto channels) {
        for (int64_t o = 0; o < cells; ++o)
            for (int64_t c = 0; c < channels; ++c) to[o * channels + c] = from[o * step * channels + c];
    });
}

inline int64_t cells_in(const vg_pool *p) {
    return p->batch * p->axis[0].size * p->axis[1].size * p->axis[2].size * p->channels;
}
inline int64_t windows_in(const vg_pool *p) {
    return p->batch * p->axis[0].out * p->axis[1].out * p->axis[2].out * p->channels;
}

// Whether to ask for the rows of cells that the next row of windows takes: the machine, which looks ahead along each
// row, starts anew with every one. Not if they are so long that the first would be gone again, nor where all is near
// anyway. Counted in elements; `rows` are those of a window.
inline bool asks_ahead(const vg_pool *p, int64_t rows) {
    return rows * p->axis[2].size * p->channels < 1 << 14 && cells_in(p) >= 1 << 20;
}
inline __attribute__((always_inline)) void ask(const void *place) { __builtin_prefetch(place, 0, 2); }

template <class T>
struct Type {
    using type = T;
};

template <class Body>
inline auto with_float(int32_t dtype, Body &&body) -> decltype(body(Type<float>{})) {
    switch (dtype) {
        case VG_F16: return body(Type<f16>{});
        case VG_BF16: return body(Type<bf16>{});
        case VG_F32: return body(Type<float>{});
        case VG_F64: return body(Type<double>{});
        default: return VG_BAD_TYPE;
    }
}

template <class Body>
inline auto with_number(int32_t dtype, Body &&body) -> decltype(body(Type<float>{})) {
    switch (dtype) {
        case VG_I8: return body(Type<int8_t>{});
        case VG_I16: return body(Type<int16_t>{});
        case VG_I32: return body(Type<int32_t>{});
        case VG_I64: return body(Type<int64_t>{});
        default: return with_float(dtype, body);
    }
}

inline int64_t at_least_one(int64_t n) { return std::max<int64_t>(n, 1); }
inline int64_t pieces(int64_t total, int64_t piece) { return (total + piece - 1) / piece; }
inline bool cancelled(const vg_run *run) { return run->cancel && *run->cancel; }

// Waking a thread costs some microseconds: each should find at least this many elements to work on.
inline constexpr int64_t kWorthAThread = 1 << 15;
inline int32_t useful_threads(const vg_pool *p, int64_t work, int32_t threads) {
    return threads_of(p->how, work / kWorthAThread, threads);
}

// The channels of a block: all of them, or where these are too many some, which begin with a whole vector.
inline int64_t channels_of_block(const vg_pool *p, bool flat, int64_t too_many, int64_t some) {
    const bool cut = takes(p->how, Path::channel_blocks, !flat && p->channels > 64, p->channels > too_many);
    return cut ? (p->channels > too_many ? some : 64) : p->channels;
}

// The outputs of a pool cut into blocks of `depths` x `heights` rows x `channels`.
struct Blocks {
    int64_t images, depth, height, channel;     // all there are
    int64_t depths, heights, channels;          // per block

    int64_t count() const {
        return images * pieces(depth, depths) * pieces(height, heights) * pieces(channel, channels);
    }
    struct Block {
        int64_t image;
        Range depth, height, channel;
    };
    // Neighbours in depth come one after the other: they share source planes.
    Block at(int64_t index) const {
        const auto cut = [&](int64_t total, int64_t piece) {
            const int64_t number = index % pieces(total, piece);
            index /= pieces(total, piece);
            return Range{number * piece, std::min(total, (number + 1) * piece)};
        };
        Block block;
        block.channel = cut(channel, channels);
        block.depth = cut(depth, depths);
        block.height = cut(height, heights);
        block.image = index;
        return block;
    }
    // No more heights than that fit somewhere; but few heights would mean that much is computed twice.
    void limit_heights(double fitting) {
        const int64_t fit = static_cast<int64_t>(std::clamp(fitting, 0.0, 1e9));
        heights = std::clamp<int64_t>(fit, std::min<int64_t>(8, heights), heights);
    }
    // With few rows of outputs, threads share them. The problem alone decides: how channels are cut decides which code
    // adds a number, and that may show in the sign of a NaN.
    void cut_channels(const vg_how &how) {
        if (takes(how, Path::cut_channels, channel > 64, images * depth * height < 16 && channel >= 128)) channels = 64;
    }
    // Cut finer until every thread has several blocks to take; where depths share planes, halve those last.
    void refine(const vg_how &how, int64_t wanted, bool keep_depth) {
        depths = cut_to(how, depths), heights = cut_to(how, heights);
        while (count() < wanted) {
            if (depths > 1 && !(keep_depth && heights > 4)) {
                depths = (depths + 1) / 2;
            } else if (heights > 1) {
                heights = (heights + 1) / 2;
            } else {
                return;
            }
        }
    }
};

template <class Body>
inline int32_t each_block(const Blocks &blocks, int32_t threads, const vg_run *run, Body &&body) {
    const bool done = vg::parallel(blocks.count(), threads, run->cancel,
                                   [&](int64_t index, int worker) { body(blocks.at(index), worker); });
    return done ? VG_OK : VG_CANCELLED;
}

}  // namespace VG_NAMESPACE::pool
