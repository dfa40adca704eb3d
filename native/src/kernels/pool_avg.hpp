// SPDX-License-Identifier: Apache-2.0
// Average pooling and its gradient.
#pragma once

#include "pool_reduce.hpp"

namespace VG_NAMESPACE::pool {

inline int64_t avg_pool_scratch(const vg_pool *p, int32_t threads) { return reduce_scratch<Mean>(p, threads); }
inline int64_t avg_pool_grad_scratch(const vg_pool *p, int32_t threads) { return reduce_scratch<Spread>(p, threads); }

inline int32_t avg_pool(const vg_pool *p, const void *x, void *y, const vg_run *run) {
    return reduce<Mean>(p, x, y, run);
}
inline int32_t avg_pool_grad(const vg_pool *p, const void *dy, void *dx, const vg_run *run) {
    return reduce<Spread>(p, dy, dx, run);
}

}  // namespace VG_NAMESPACE::pool
