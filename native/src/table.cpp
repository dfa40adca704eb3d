// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#define VG_ENTRY(name, family, problem, parameters, arguments) .name##_scratch = name##_scratch, .name = name,
#define VG_ISA(name)                                           \
    namespace name {                                           \
    const vg::Kernels kernels = {VG_KERNELS(VG_ENTRY)};        \
    }

VG_ISA(vg_baseline)
#if defined(__x86_64__)
VG_ISA(vg_avx2)
VG_ISA(vg_avx512)
#endif
