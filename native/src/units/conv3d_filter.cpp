// SPDX-License-Identifier: Apache-2.0
#include "../kernels/conv3d_filter.hpp"
#include "../table.hpp"

namespace VG_NAMESPACE {
VG_UNIT_CONV3D_FILTER(VG_EXPORT)
}
