// SPDX-License-Identifier: Apache-2.0
// Every kernel, compiled for the instruction set of the file that includes this one. Each family has its own namespace.
#include "../table.hpp"
#include "conv3d.hpp"
#include "conv3d_filter.hpp"
#include "conv3d_input.hpp"
#include "pool_avg.hpp"
#include "pool_max.hpp"
#include "pool_positions.hpp"

namespace VG_NAMESPACE {

extern const vg::Kernels kernels;
const vg::Kernels kernels = {
    conv::conv3d_scratch,
    conv::conv3d_input_scratch,
    conv::conv3d_filter_scratch,
    pool::avg_pool_scratch,
    pool::avg_pool_grad_scratch,
    pool::max_pool_scratch,
    pool::max_pool_grad_scratch,
    pool::max_pool_grad_grad_scratch,
    conv::conv3d,
    conv::conv3d_input,
    conv::conv3d_filter,
    pool::avg_pool,
    pool::avg_pool_grad,
    pool::max_pool,
    pool::max_pool_grad,
    pool::max_pool_grad_grad,
    pool::max_pool_positions_scratch,
    pool::max_pool_grad_positions_scratch,
    pool::max_pool_grad_grad_positions_scratch,
    pool::max_pool_positions,
    pool::max_pool_grad_positions,
    pool::max_pool_grad_grad_positions,
};

}  // namespace VG_NAMESPACE
