// SPDX-License-Identifier: Apache-2.0
// What the pools share: windows cut to the volume, element types, and the split into tasks.
#pragma once

#include <algorithm>

#include "../../include/voxgrad.h"
#include "../threads.hpp"
#include "number.hpp"

namespace VG_NAMESPACE {

// A half-open range of cells or of windows along one axis.
struct Range {
    int64_t lo, hi;
};

inline Range cells_of(const vg_span &axis, int64_t window) {
    const int64_t lo = std::max<int64_t>(axis.lo[window], 0);
    return {lo, std::max(lo, std::min(axis.hi[window], axis.size))};
}
inline Range windows_of(const vg_span &axis, int64_t cell) { return {axis.first[cell], axis.last[cell]}; }

// The number of cells an average divides by along one axis: all of the window, also what lies outside the volume.
inline int64_t extent(const vg_span &axis, int64_t window) {
    return std::max<int64_t>(axis.hi[window] - axis.lo[window], 0);
}

inline int64_t volume(const vg_pool *p) { return p->axis[0].size * p->axis[1].size * p->axis[2].size; }
inline int64_t windows(const vg_pool *p) { return p->axis[0].out * p->axis[1].out * p->axis[2].out; }

// Channels are worked on in blocks small enough for the accumulators to stay in the first-level cache.
inline constexpr int64_t kBlock = 64;

template <class Body>
inline bool each_block(int64_t channels, Body &&body) {
    for (int64_t c = 0; c < channels; c += kBlock) body(c, static_cast<int>(std::min(kBlock, channels - c)));
    return true;
}

template <class T>
struct Type {
    using type = T;
};

template <class Body>
inline int32_t with_float(int32_t dtype, Body &&body) {
    switch (dtype) {
        case VG_F16: return body(Type<f16>{});
        case VG_BF16: return body(Type<bf16>{});
        case VG_F32: return body(Type<float>{});
        case VG_F64: return body(Type<double>{});
        default: return VG_BAD_TYPE;
    }
}

template <class Body>
inline int32_t with_number(int32_t dtype, Body &&body) {
    switch (dtype) {
        case VG_I8: return body(Type<int8_t>{});
        case VG_I16: return body(Type<int16_t>{});
        case VG_I32: return body(Type<int32_t>{});
        case VG_I64: return body(Type<int64_t>{});
        default: return with_float(dtype, body);
    }
}

// One task per row: body(n, d, h, worker) for every image, depth and height.
template <class Body>
inline int32_t each_row(int64_t images, int64_t depths, int64_t heights, const vg_run *run, Body &&body) {
    const bool done = vg::parallel(images * depths * heights, run->threads, run->cancel, [&](int64_t index, int worker) {
        body(index / heights / depths, index / heights % depths, index % heights, worker);
    });
    return done ? VG_OK : VG_CANCELLED;
}

}  // namespace VG_NAMESPACE
