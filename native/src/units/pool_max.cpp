// SPDX-License-Identifier: Apache-2.0
#include "../kernels/pool_max.hpp"
#include "../table.hpp"

namespace VG_NAMESPACE {
VG_UNIT_POOL_MAX(VG_EXPORT)
}
