// SPDX-License-Identifier: Apache-2.0
// dx = the transpose of conv3d in x, applied to dy: a correlation of dy with the transposed filter, one for each
// residue of the strides, so that nothing is multiplied with the zeros between the windows.
#pragma once

#include "conv_direct.hpp"

namespace VG_NAMESPACE::conv {

inline Correlation input_gradient_of(const vg_conv *problem) {
    const vg_conv simple = joined(*problem), *p = &simple;
    Correlation c = {};
    c.batch = p->batch;
    c.groups = p->groups;
    c.in = p->groups ? p->out_channels / p->groups : 0;
    c.out = p->groups ? p->in_channels / p->groups : 0;
    c.from = output_strides(p);
    c.to = input_strides(p);
    c.w_tap = c.out * p->out_channels;
    c.w_in = 1;
    c.w_out = p->out_channels;
    c.w_group = c.in;
    c.transposed = true;
    c.how = p->how;
    for (int a = 0; a < 3; ++a) {
        c.axis[a] = p->axis[a];
        c.window[a] = p->axis[a].window;
        c.phases[a] = least(p->axis[a].stride, p->axis[a].size);
    }
    c.choose_slabs();
    return c;
}

inline int64_t conv3d_input_scratch(const vg_conv *p, int32_t threads) {
    return with_type<int64_t>(p->dtype, 0, [&](auto s) {
        using S = decltype(s);
        const Correlation c = input_gradient_of(p);
        const vg::Kernels *half = with_half_vectors<S>(c);
        return half ? half->conv3d_input_scratch(p, threads) : correlate_scratch<S>(c, threads);
    });
}

inline int32_t conv3d_input(const vg_conv *p, const void *w, const void *dy, void *dx, const vg_run *run) {
    return with_type<int32_t>(p->dtype, VG_BAD_TYPE, [&](auto s) {
        using S = decltype(s);
        const Correlation c = input_gradient_of(p);
        if (const vg::Kernels *half = with_half_vectors<S>(c)) return half->conv3d_input(p, w, dy, dx, run);
        return correlate(c, static_cast<const S *>(dy), static_cast<const S *>(w), static_cast<S *>(dx), run);
    });
}

}  // namespace VG_NAMESPACE::conv
