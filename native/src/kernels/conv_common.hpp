// SPDX-License-Identifier: Apache-2.0
// What the three convolutions share: where a tensor's elements lie, and the choice of the element type.
#pragma once

#include "../../include/voxgrad.h"
#include "../threads.hpp"
#include "number.hpp"

namespace VG_NAMESPACE {

// Distances, in elements, between neighbours of an activation tensor along each of its axes.
struct Strides {
    int64_t batch, space[3], channel;
};

inline Strides strides_of(const vg_conv *p, int64_t channels, const int64_t size[3]) {
    const int64_t last = p->channels_last ? channels : 1;
    Strides s;
    s.channel = p->channels_last ? 1 : size[0] * size[1] * size[2];
    s.space[2] = last;
    s.space[1] = size[2] * last;
    s.space[0] = size[1] * size[2] * last;
    s.batch = size[0] * size[1] * size[2] * channels;
    return s;
}

inline Strides input_strides(const vg_conv *p) {
    const int64_t size[3] = {p->axis[0].size, p->axis[1].size, p->axis[2].size};
    return strides_of(p, p->in_channels, size);
}

inline Strides output_strides(const vg_conv *p) {
    const int64_t size[3] = {p->axis[0].out, p->axis[1].out, p->axis[2].out};
    return strides_of(p, p->out_channels, size);
}

// Calls body with a value of the storage type that the problem names.
template <class Body>
inline int32_t with_type(int32_t dtype, Body &&body) {
    switch (dtype) {
        case VG_F16: return body(f16{});
        case VG_BF16: return body(bf16{});
        case VG_F32: return body(float{});
        case VG_F64: return body(double{});
        default: return VG_BAD_TYPE;
    }
}

}  // namespace VG_NAMESPACE
