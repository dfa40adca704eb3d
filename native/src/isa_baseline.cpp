// SPDX-License-Identifier: Apache-2.0
#define VG_NAMESPACE vg_baseline
#define VG_VECTOR_BYTES 16
#include "kernels/all.hpp"
