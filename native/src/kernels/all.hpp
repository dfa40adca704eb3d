// SPDX-License-Identifier: Apache-2.0
// Every kernel, compiled for the instruction set of the file that includes this one.
#include "../table.hpp"
#include "conv3d.hpp"
#include "conv3d_filter.hpp"
#include "conv3d_input.hpp"
#include "pool_avg.hpp"
#include "pool_max.hpp"

namespace VG_NAMESPACE {

extern const vg::Kernels kernels;
const vg::Kernels kernels = {
    conv3d_scratch,   conv3d_input_scratch,  conv3d_filter_scratch, avg_pool_scratch,
    avg_pool_grad_scratch, max_pool_scratch, max_pool_grad_scratch, max_pool_grad_grad_scratch,
    conv3d,           conv3d_input,          conv3d_filter,         avg_pool,
    avg_pool_grad,    max_pool,              max_pool_grad,         max_pool_grad_grad,
};

}  // namespace VG_NAMESPACE
