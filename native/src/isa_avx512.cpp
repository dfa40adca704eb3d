// SPDX-License-Identifier: Apache-2.0
#define VG_NAMESPACE vg_avx512
#define VG_VECTOR_BYTES 64
#include "kernels/all.hpp"
