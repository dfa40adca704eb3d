// SPDX-License-Identifier: Apache-2.0
#define VG_NAMESPACE vg_avx2
#define VG_VECTOR_BYTES 32
#include "kernels/all.hpp"
