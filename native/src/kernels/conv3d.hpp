// SPDX-License-Identifier: Apache-2.0
// y = correlation of x with the filter.
#pragma once

#include "conv_direct.hpp"

namespace VG_NAMESPACE::conv {

inline Correlation forward_of(const vg_conv *problem) {
    const vg_conv simple = joined(*problem), *p = &simple;
    Correlation c = {};
    c.batch = p->batch;
    c.groups = p->groups;
    c.in = p->groups ? p->in_channels / p->groups : 0;
    c.out = p->groups ? p->out_channels / p->groups : 0;
    c.from = input_strides(p);
    c.to = output_strides(p);
    c.w_tap = c.in * p->out_channels;
    c.w_in = p->out_channels;
    c.w_out = 1;
    c.w_group = c.out;
    c.transposed = false;
    c.how = p->how;
    for (int a = 0; a < 3; ++a) {
        c.axis[a] = p->axis[a];
        c.window[a] = p->axis[a].window;
        c.phases[a] = 1;
    }
    c.choose_slabs();
    return c;
}

inline int64_t conv3d_scratch(const vg_conv *p, int32_t threads) {
    return with_type<int64_t>(p->dtype, 0, [&](auto s) {
        using S = decltype(s);
        const Correlation c = forward_of(p);
        const vg::Kernels *half = with_half_vectors<S>(c);
        return half ? half->conv3d_scratch(p, threads) : correlate_scratch<S>(c, threads);
    });
}

inline int32_t conv3d(const vg_conv *p, const void *x, const void *w, void *y, const vg_run *run) {
    return with_type<int32_t>(p->dtype, VG_BAD_TYPE, [&](auto s) {
        using S = decltype(s);
        const Correlation c = forward_of(p);
        if (const vg::Kernels *half = with_half_vectors<S>(c)) return half->conv3d(p, x, w, y, run);
        return correlate(c, static_cast<const S *>(x), static_cast<const S *>(w), static_cast<S *>(y), run);
    });
}

}  // namespace VG_NAMESPACE::conv
