// SPDX-License-Identifier: Apache-2.0
// What each instruction set offers. One table per set; abi.cpp picks one at run time.
#pragma once

#include "../include/voxgrad.h"

namespace vg {

struct Kernels {
    int64_t (*conv3d_scratch)(const vg_conv *, int32_t);
    int64_t (*conv3d_input_scratch)(const vg_conv *, int32_t);
    int64_t (*conv3d_filter_scratch)(const vg_conv *, int32_t);
    int64_t (*avg_pool_scratch)(const vg_pool *, int32_t);
    int64_t (*avg_pool_grad_scratch)(const vg_pool *, int32_t);
    int64_t (*max_pool_scratch)(const vg_pool *, int32_t);
    int64_t (*max_pool_grad_scratch)(const vg_pool *, int32_t);
    int64_t (*max_pool_grad_grad_scratch)(const vg_pool *, int32_t);
    int32_t (*conv3d)(const vg_conv *, const void *, const void *, void *, const vg_run *);
    int32_t (*conv3d_input)(const vg_conv *, const void *, const void *, void *, const vg_run *);
    int32_t (*conv3d_filter)(const vg_conv *, const void *, const void *, void *, const vg_run *);
    int32_t (*avg_pool)(const vg_pool *, const void *, void *, const vg_run *);
    int32_t (*avg_pool_grad)(const vg_pool *, const void *, void *, const vg_run *);
    int32_t (*max_pool)(const vg_pool *, const void *, void *, const vg_run *);
    int32_t (*max_pool_grad)(const vg_pool *, const void *, const void *, const void *, void *, const vg_run *);
    int32_t (*max_pool_grad_grad)(const vg_pool *, const void *, const void *, const void *, void *, const vg_run *);
    int64_t (*max_pool_positions_scratch)(const vg_pool *, int32_t);
    int64_t (*max_pool_grad_positions_scratch)(const vg_pool *, int32_t);
    int64_t (*max_pool_grad_grad_positions_scratch)(const vg_pool *, int32_t);
    int32_t (*max_pool_positions)(const vg_pool *, const void *, void *, uint8_t *, const vg_run *);
    int32_t (*max_pool_grad_positions)(const vg_pool *, const uint8_t *, const void *, void *, const vg_run *);
    int32_t (*max_pool_grad_grad_positions)(const vg_pool *, const uint8_t *, const void *, void *, const vg_run *);
};

}  // namespace vg

namespace vg_baseline {
extern const vg::Kernels kernels;
}
namespace vg_avx2 {
extern const vg::Kernels kernels;
}
namespace vg_avx512 {
extern const vg::Kernels kernels;
}
