// SPDX-License-Identifier: Apache-2.0
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns about its own avx512fintrin.h
#pragma GCC diagnostic ignored "-Wuninitialized"
#define VG_NAMESPACE vg_avx512
#define VG_VECTOR_BYTES 64
#include "kernels/all.hpp"
