// SPDX-License-Identifier: Apache-2.0
// y = correlation of x with the filter.
#pragma once

#include "conv_common.hpp"

namespace VG_NAMESPACE {

template <class S>
int32_t conv3d_typed(const vg_conv *p, const S *x, const S *w, S *y, const vg_run *run) {
    using A = sum_t<S>;
    constexpr int64_t chunk = 64;
    const vg_axis *ax = p->axis;
    const Strides xs = input_strides(p), ys = output_strides(p);
    const int64_t cout = p->out_channels, cig = p->groups ? p->in_channels / p->groups : 0;
    const int64_t cog = p->groups ? cout / p->groups : 0;
    if (cog == 0 || ax[2].out == 0) return VG_OK;
    const bool done = vg::parallel(p->batch * ax[0].out * ax[1].out, run->threads, run->cancel, [&](int64_t task, int) {
        const int64_t oh = task % ax[1].out, od = task / ax[1].out % ax[0].out, n = task / ax[1].out / ax[0].out;
        for (int64_t ow = 0; ow < ax[2].out; ++ow) {
            S *to = y + n * ys.batch + od * ys.space[0] + oh * ys.space[1] + ow * ys.space[2];
            for (int64_t g = 0; g < p->groups; ++g) {
                for (int64_t c0 = 0; c0 < cog; c0 += chunk) {
                    const int64_t cn = cog - c0 < chunk ? cog - c0 : chunk;
                    A acc[chunk] = {};
                    for (int64_t kd = 0; kd < ax[0].window; ++kd) {
                        const int64_t id = od * ax[0].stride - ax[0].before + kd * ax[0].dilation;
                        if (id < 0 || id >= ax[0].size) continue;
                        for (int64_t kh = 0; kh < ax[1].window; ++kh) {
                            const int64_t ih = oh * ax[1].stride - ax[1].before + kh * ax[1].dilation;
                            if (ih < 0 || ih >= ax[1].size) continue;
                            for (int64_t kw = 0; kw < ax[2].window; ++kw) {
                                const int64_t iw = ow * ax[2].stride - ax[2].before + kw * ax[2].dilation;
                                if (iw < 0 || iw >= ax[2].size) continue;
                                const S *from = x + n * xs.batch + id * xs.space[0] + ih * xs.space[1] +
                                                iw * xs.space[2] + g * cig * xs.channel;
                                const S *taps = w + ((kd * ax[1].window + kh) * ax[2].window + kw) * cig * cout +
                                                g * cog + c0;
                                for (int64_t ci = 0; ci < cig; ++ci) {
                                    const A v = widen(from[ci * xs.channel]);
                                    for (int64_t c = 0; c < cn; ++c) acc[c] += v * widen(taps[ci * cout + c]);
                                }
                            }
                        }
                    }
                    for (int64_t c = 0; c < cn; ++c) narrow(acc[c], to + (g * cog + c0 + c) * ys.channel);
                }
            }
        }
    });
    return done ? VG_OK : VG_CANCELLED;
}

inline int64_t conv3d_scratch(const vg_conv *, int32_t) { return 0; }

inline int32_t conv3d(const vg_conv *p, const void *x, const void *w, void *y, const vg_run *run) {
    return with_type(p->dtype, [&](auto s) {
        using S = decltype(s);
        return conv3d_typed(p, static_cast<const S *>(x), static_cast<const S *>(w), static_cast<S *>(y), run);
    });
}

}  // namespace VG_NAMESPACE
