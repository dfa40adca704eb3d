// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#define VG_ENTRY(name, family, problem, parameters, arguments) .name##_scratch = name##_scratch, .name = name,
#define VG_TABLE(name, number)                          \
    namespace name {                                    \
    const vg::Kernels kernels = {VG_KERNELS(VG_ENTRY)}; \
    }

VG_SETS(VG_TABLE)  // of build.py: X(name, number) for each instruction set that is compiled
