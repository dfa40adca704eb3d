// SPDX-License-Identifier: Apache-2.0
#include "kernels/paths.hpp"

extern "C" const vg_path *vg_paths(int32_t *count) {
#define VG_ENTRY(name, vectors, kernels, possible, worth) {#name, vectors, kernels, possible, worth},
    static const vg_path paths[] = {VG_PATHS(VG_ENTRY)};
#undef VG_ENTRY
    *count = static_cast<int32_t>(vg::Path::count);
    return paths;
}
