// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#define VG_ENTRY(name, family, problem, parameters, arguments) .name##_scratch = name##_scratch, .name = name,
#define VG_TABLE(name, number)                          \
    namespace name {                                    \
    const vg::Kernels kernels = {VG_KERNELS(VG_ENTRY)}; \
    }
VG_SETS(VG_TABLE)  // of build.py: X(name, number) for each instruction set that is compiled

#define VG_LEND(name, family, problem, parameters, arguments) \
    lent.name##_scratch = name##_scratch;                     \
    lent.name = name;
#define VG_CONVOLUTIONS(name)                     \
    namespace name {                              \
    constexpr vg::Kernels convolutions() {        \
        vg::Kernels lent{};                       \
        VG_UNIT_CONV3D(VG_LEND)                   \
        VG_UNIT_CONV3D_FILTER(VG_LEND)            \
        return lent;                              \
    }                                             \
    const vg::Kernels kernels = convolutions();   \
    }
VG_LENT(VG_CONVOLUTIONS)  // ... and X(name) for one of which another calls the convolutions, and nobody the rest
