// SPDX-License-Identifier: Apache-2.0
// Max pooling, its gradient and the gradient of that.
#pragma once

#include <limits>

#include "pool_reduce.hpp"

namespace VG_NAMESPACE::pool {


inline constexpr int64_t kBlock = 64;
template <class Body>
inline bool each_channels(int64_t channels, Body &&body) {
    for (int64_t c = 0; c < channels; c += kBlock) body(c, static_cast<int>(std::min(kBlock, channels - c)));
    return true;
}
inline Range cells_of(const vg_span &a, int64_t o) { return cells_of(a).at(o); }
inline Range windows_of(const vg_span &a, int64_t o) { return windows_of(a).at(o); }
inline int64_t windows(const vg_pool *p) { return p->axis[0].out * p->axis[1].out * p->axis[2].out; }
template <class Body>
inline int32_t each_row(int64_t images, int64_t depths, int64_t heights, const vg_run *run, Body &&body) {
    const bool done = vg::parallel(images * depths * heights, run->threads, run->cancel, [&](int64_t index, int worker) {
        body(index / heights / depths, index / heights % depths, index % heights, worker);
    });
    return done ? VG_OK : VG_CANCELLED;
}
inline float ordered(f16 v) { return widen(v); }
inline float ordered(bf16 v) { return widen(v); }
template <class T>
inline T ordered(T v) {
    return v;
}

// Position of a cell in its window, in depth, height, width order over the whole (uncut) window.
inline int64_t position(const vg_pool *p, const int64_t (&window)[3], const int64_t (&cell)[3]) {
    int64_t at = 0;
    for (int a = 0; a < 3; ++a) at = at * extent(p->axis[a], window[a]) + cell[a] - p->axis[a].lo[window[a]];
    return at;
}

inline int64_t max_pool_scratch(const vg_pool *p, int32_t threads) { return reduce_scratch<Largest>(p, threads); }
inline int64_t max_pool_grad_scratch(const vg_pool *p, int32_t) {
    return p->near_ties ? 0 : p->batch * windows(p) * p->channels * 8;
}
inline int64_t max_pool_grad_grad_scratch(const vg_pool *, int32_t) { return 0; }

// body(o, i, c, len) for the cells of every window in order: windows o and cells i as element offsets.
template <class S, class Found>
int32_t first_matches(const vg_pool *p, const S *x, const S *y, const vg_run *run, Found &&found) {
    const auto &[D, H, W] = p->axis;
    const int64_t C = p->channels;
    return each_row(p->batch, D.out, H.out, run, [&](int64_t n, int64_t od, int64_t oh, int) {
        const Range rd = cells_of(D, od), rh = cells_of(H, oh);
        for (int64_t ow = 0; ow < W.out; ++ow) {
            const Range rw = cells_of(W, ow);
            const int64_t o = (((n * D.out + od) * H.out + oh) * W.out + ow) * C;
            each_channels(C, [&](int64_t c, int len) {
                int64_t at[kBlock], cell[kBlock];
                for (int i = 0; i < len; ++i) at[i] = cell[i] = -1;
                for (int64_t d = rd.lo; d < rd.hi; ++d)
                    for (int64_t h = rh.lo; h < rh.hi; ++h)
                        for (int64_t w = rw.lo; w < rw.hi; ++w) {
                            const int64_t in = (((n * D.size + d) * H.size + h) * W.size + w) * C + c;
                            const int64_t here = position(p, {od, oh, ow}, {d, h, w});
                            for (int i = 0; i < len; ++i) {
                                const bool hit = at[i] < 0 && ordered(x[in + i]) == ordered(y[o + c + i]);
                                at[i] = hit ? here : at[i];
                                cell[i] = hit ? in + i : cell[i];
                            }
                        }
                for (int i = 0; i < len; ++i) found(o + c + i, at[i], cell[i]);
            });
        }
    });
}

// |x - y| < 1e-5 with the difference and the bound rounded to the storage type, as TensorFlow's CPU kernel has it.
template <class S>
inline bool near(S x, S y) {
    S difference, bound;
    narrow(widen(x) - widen(y), &difference);
    narrow(static_cast<sum_t<S>>(1e-5), &bound);
    const auto d = widen(difference);
    return (d < 0 ? -d : d) < widen(bound);
}

// takes(o, at, i): does cell i, at this position of window o, get that window's gradient?
template <class S, class Takes>
int32_t gather(const vg_pool *p, const S *dy, S *dx, const vg_run *run, Takes &&takes) {
    using A = sum_t<S>;
    const auto &[D, H, W] = p->axis;
    const int64_t C = p->channels;
    return each_row(p->batch, D.size, H.size, run, [&](int64_t n, int64_t d, int64_t h, int) {
        const Range rd = windows_of(D, d), rh = windows_of(H, h);
        for (int64_t w = 0; w < W.size; ++w) {
            const Range rw = windows_of(W, w);
            const int64_t out = (((n * D.size + d) * H.size + h) * W.size + w) * C;
            each_channels(C, [&](int64_t c, int len) {
                A sum[kBlock] = {};
                for (int64_t od = rd.lo; od < rd.hi; ++od)
                    for (int64_t oh = rh.lo; oh < rh.hi; ++oh)
                        for (int64_t ow = rw.lo; ow < rw.hi; ++ow) {
                            const int64_t o = (((n * D.out + od) * H.out + oh) * W.out + ow) * C + c;
                            const int64_t at = position(p, {od, oh, ow}, {d, h, w});
                            for (int i = 0; i < len; ++i)
                                if (takes(o + i, at, out + c + i)) sum[i] += widen(dy[o + i]);
                        }
                for (int i = 0; i < len; ++i) narrow(sum[i], dx + out + c + i);
            });
        }
    });
}

template <class S>
int32_t max_pool_grad_of(const vg_pool *p, const S *x, const S *y, const S *dy, S *dx, const vg_run *run) {
    if (p->near_ties)
        return gather(p, dy, dx, run, [&](int64_t o, int64_t, int64_t i) { return near(x[i], y[o]); });
    int64_t *positions = static_cast<int64_t *>(run->scratch);
    const int32_t status =
        first_matches(p, x, y, run, [&](int64_t o, int64_t at, int64_t) { positions[o] = at; });
    if (status != VG_OK) return status;
    return gather(p, dy, dx, run, [&](int64_t o, int64_t at, int64_t) { return positions[o] == at; });
}

template <class S>
int32_t max_pool_grad_grad_of(const vg_pool *p, const S *x, const S *y, const S *grad, S *out, const vg_run *run) {
    return first_matches(p, x, y, run,
                         [&](int64_t o, int64_t, int64_t cell) { out[o] = cell < 0 ? S{} : grad[cell]; });
}

inline int32_t max_pool(const vg_pool *p, const void *x, void *y, const vg_run *run) {
    return reduce<Largest>(p, x, y, run);
}

inline int32_t max_pool_grad(const vg_pool *p, const void *x, const void *y, const void *dy, void *dx,
                             const vg_run *run) {
    return with_float(p->dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        return max_pool_grad_of(p, static_cast<const S *>(x), static_cast<const S *>(y), static_cast<const S *>(dy),
                                static_cast<S *>(dx), run);
    });
}

inline int32_t max_pool_grad_grad(const vg_pool *p, const void *x, const void *y, const void *grad, void *out,
                                  const vg_run *run) {
    return with_number(p->dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        return max_pool_grad_grad_of(p, static_cast<const S *>(x), static_cast<const S *>(y),
                                     static_cast<const S *>(grad), static_cast<S *>(out), run);
    });
}

}  // namespace VG_NAMESPACE::pool
