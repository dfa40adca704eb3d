// SPDX-License-Identifier: Apache-2.0
// dfilter = the transpose of conv3d in the filter, applied to dy.
#pragma once

#include "conv_common.hpp"

namespace VG_NAMESPACE::conv {

template <class S>
int32_t conv3d_filter_typed(const vg_conv *p, const S *x, const S *dy, S *dw, const vg_run *run) {
    using A = sum_t<S>;
    constexpr int64_t chunk = 64;
    const vg_axis *ax = p->axis;
    const Strides xs = input_strides(p), ys = output_strides(p);
    const int64_t cout = p->out_channels, cig = p->groups ? p->in_channels / p->groups : 0;
    const int64_t cog = p->groups ? cout / p->groups : 0;
    if (cig == 0 || cog == 0) return VG_OK;
    const int64_t taps = ax[0].window * ax[1].window * ax[2].window;
    const bool done = vg::parallel(taps * cig, run->threads, run->cancel, [&](int64_t task, int) {
        const int64_t ci = task % cig, tap = task / cig;
        const int64_t kw = tap % ax[2].window, kh = tap / ax[2].window % ax[1].window, kd = tap / ax[2].window / ax[1].window;
        for (int64_t c0 = 0; c0 < cout; c0 += chunk) {
            const int64_t cn = cout - c0 < chunk ? cout - c0 : chunk;
            A acc[chunk] = {};
            for (int64_t n = 0; n < p->batch; ++n) {
                for (int64_t od = 0; od < ax[0].out; ++od) {
                    const int64_t id = od * ax[0].stride - ax[0].before + kd * ax[0].dilation;
                    if (id < 0 || id >= ax[0].size) continue;
                    for (int64_t oh = 0; oh < ax[1].out; ++oh) {
                        const int64_t ih = oh * ax[1].stride - ax[1].before + kh * ax[1].dilation;
                        if (ih < 0 || ih >= ax[1].size) continue;
                        A row[chunk] = {};  // summed apart, so that rounding errors grow with the rows only
                        for (int64_t ow = 0; ow < ax[2].out; ++ow) {
                            const int64_t iw = ow * ax[2].stride - ax[2].before + kw * ax[2].dilation;
                            if (iw < 0 || iw >= ax[2].size) continue;
                            const S *a = x + n * xs.batch + id * xs.space[0] + ih * xs.space[1] + iw * xs.space[2];
                            const S *b = dy + n * ys.batch + od * ys.space[0] + oh * ys.space[1] + ow * ys.space[2];
                            for (int64_t c = 0; c < cn; ++c) {
                                const int64_t g = (c0 + c) / cog;
                                row[c] += widen(a[(g * cig + ci) * xs.channel]) * widen(b[(c0 + c) * ys.channel]);
                            }
                        }
                        for (int64_t c = 0; c < cn; ++c) acc[c] += row[c];
                    }
                }
            }
            for (int64_t c = 0; c < cn; ++c) narrow(acc[c], dw + (tap * cig + ci) * cout + c0 + c);
        }
    });
    return done ? VG_OK : VG_CANCELLED;
}

inline int64_t conv3d_filter_scratch(const vg_conv *, int32_t) { return 0; }

inline int32_t conv3d_filter(const vg_conv *p, const void *x, const void *dy, void *dw, const vg_run *run) {
    return with_type<int32_t>(p->dtype, VG_BAD_TYPE, [&](auto s) {
        using S = decltype(s);
        return conv3d_filter_typed(p, static_cast<const S *>(x), static_cast<const S *>(dy), static_cast<S *>(dw), run);
    });
}

}  // namespace VG_NAMESPACE::conv
