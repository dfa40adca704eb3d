// SPDX-License-Identifier: Apache-2.0
// dx = the transpose of conv3d in x, applied to dy.
#pragma once

#include "conv_common.hpp"

namespace VG_NAMESPACE {

// The window whose tap t reads cell i, or -1 where there is none.
inline int64_t window_of(const vg_axis &a, int64_t i, int64_t t) {
    const int64_t at = i + a.before - t * a.dilation;
    if (at < 0 || at % a.stride != 0) return -1;
    return at / a.stride < a.out ? at / a.stride : -1;
}

template <class S>
int32_t conv3d_input_typed(const vg_conv *p, const S *w, const S *dy, S *dx, const vg_run *run) {
    using A = sum_t<S>;
    constexpr int64_t chunk = 64;
    const vg_axis *ax = p->axis;
    const Strides xs = input_strides(p), ys = output_strides(p);
    const int64_t cout = p->out_channels, cig = p->groups ? p->in_channels / p->groups : 0;
    const int64_t cog = p->groups ? cout / p->groups : 0;
    if (cig == 0 || ax[2].size == 0) return VG_OK;
    const bool done = vg::parallel(p->batch * ax[0].size * ax[1].size, run->threads, run->cancel, [&](int64_t task, int) {
        const int64_t ih = task % ax[1].size, id = task / ax[1].size % ax[0].size, n = task / ax[1].size / ax[0].size;
        for (int64_t iw = 0; iw < ax[2].size; ++iw) {
            S *to = dx + n * xs.batch + id * xs.space[0] + ih * xs.space[1] + iw * xs.space[2];
            for (int64_t g = 0; g < p->groups; ++g) {
                for (int64_t c0 = 0; c0 < cig; c0 += chunk) {
                    const int64_t cn = cig - c0 < chunk ? cig - c0 : chunk;
                    A acc[chunk] = {};
                    for (int64_t kd = 0; kd < ax[0].window; ++kd) {
                        const int64_t od = window_of(ax[0], id, kd);
                        if (od < 0) continue;
                        for (int64_t kh = 0; kh < ax[1].window; ++kh) {
                            const int64_t oh = window_of(ax[1], ih, kh);
                            if (oh < 0) continue;
                            for (int64_t kw = 0; kw < ax[2].window; ++kw) {
                                const int64_t ow = window_of(ax[2], iw, kw);
                                if (ow < 0) continue;
                                const S *from = dy + n * ys.batch + od * ys.space[0] + oh * ys.space[1] +
                                                ow * ys.space[2] + g * cog * ys.channel;
                                const S *taps = w + ((kd * ax[1].window + kh) * ax[2].window + kw) * cig * cout +
                                                c0 * cout + g * cog;
                                for (int64_t c = 0; c < cn; ++c) {
                                    A sum = 0;
                                    for (int64_t co = 0; co < cog; ++co)
                                        sum += widen(from[co * ys.channel]) * widen(taps[c * cout + co]);
                                    acc[c] += sum;
                                }
                            }
                        }
                    }
                    for (int64_t c = 0; c < cn; ++c) narrow(acc[c], to + (g * cig + c0 + c) * xs.channel);
                }
            }
        }
    });
    return done ? VG_OK : VG_CANCELLED;
}

inline int64_t conv3d_input_scratch(const vg_conv *, int32_t) { return 0; }

inline int32_t conv3d_input(const vg_conv *p, const void *w, const void *dy, void *dx, const vg_run *run) {
    return with_type(p->dtype, [&](auto s) {
        using S = decltype(s);
        return conv3d_input_typed(p, static_cast<const S *>(w), static_cast<const S *>(dy), static_cast<S *>(dx), run);
    });
}

}  // namespace VG_NAMESPACE
