// SPDX-License-Identifier: Apache-2.0
// Average pooling and its gradient.
#pragma once

#include "pool_common.hpp"

namespace VG_NAMESPACE {

inline int64_t avg_pool_scratch(const vg_pool *, int32_t) { return 0; }
inline int64_t avg_pool_grad_scratch(const vg_pool *, int32_t) { return 0; }

template <class S>
int32_t avg_pool_of(const vg_pool *p, const S *x, S *y, const vg_run *run) {
    using A = sum_t<S>;
    const auto &[D, H, W] = p->axis;
    const int64_t C = p->channels;
    return each_row(p->batch, D.out, H.out, run, [&](int64_t n, int64_t od, int64_t oh, int) {
        const Range rd = cells_of(D, od), rh = cells_of(H, oh);
        for (int64_t ow = 0; ow < W.out; ++ow) {
            const Range rw = cells_of(W, ow);
            const int64_t count = extent(D, od) * extent(H, oh) * extent(W, ow);
            S *out = y + (((n * D.out + od) * H.out + oh) * W.out + ow) * C;
            each_block(C, [&](int64_t c, int len) {
                A sum[kBlock] = {};
                for (int64_t d = rd.lo; d < rd.hi; ++d)
                    for (int64_t h = rh.lo; h < rh.hi; ++h)
                        for (int64_t w = rw.lo; w < rw.hi; ++w) {
                            const S *in = x + (((n * D.size + d) * H.size + h) * W.size + w) * C + c;
                            for (int i = 0; i < len; ++i) sum[i] += widen(in[i]);
                        }
                for (int i = 0; i < len; ++i) narrow(count > 0 ? sum[i] / static_cast<A>(count) : A(0), out + c + i);
            });
        }
    });
}

template <class S>
int32_t avg_pool_grad_of(const vg_pool *p, const S *dy, S *dx, const vg_run *run) {
    using A = sum_t<S>;
    const auto &[D, H, W] = p->axis;
    const int64_t C = p->channels;
    return each_row(p->batch, D.size, H.size, run, [&](int64_t n, int64_t d, int64_t h, int) {
        const Range rd = windows_of(D, d), rh = windows_of(H, h);
        for (int64_t w = 0; w < W.size; ++w) {
            const Range rw = windows_of(W, w);
            S *out = dx + (((n * D.size + d) * H.size + h) * W.size + w) * C;
            each_block(C, [&](int64_t c, int len) {
                A sum[kBlock] = {};
                for (int64_t od = rd.lo; od < rd.hi; ++od)
                    for (int64_t oh = rh.lo; oh < rh.hi; ++oh)
                        for (int64_t ow = rw.lo; ow < rw.hi; ++ow) {
                            const A count = static_cast<A>(extent(D, od) * extent(H, oh) * extent(W, ow));
                            const S *in = dy + (((n * D.out + od) * H.out + oh) * W.out + ow) * C + c;
                            for (int i = 0; i < len; ++i) sum[i] += widen(in[i]) / count;
                        }
                for (int i = 0; i < len; ++i) narrow(sum[i], out + c + i);
            });
        }
    });
}

inline int32_t avg_pool(const vg_pool *p, const void *x, void *y, const vg_run *run) {
    return with_float(p->dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        return avg_pool_of(p, static_cast<const S *>(x), static_cast<S *>(y), run);
    });
}

inline int32_t avg_pool_grad(const vg_pool *p, const void *dy, void *dx, const vg_run *run) {
    return with_float(p->dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        return avg_pool_grad_of(p, static_cast<const S *>(dy), static_cast<S *>(dx), run);
    });
}

}  // namespace VG_NAMESPACE
