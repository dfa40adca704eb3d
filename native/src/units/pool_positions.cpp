// SPDX-License-Identifier: Apache-2.0
#include "../kernels/pool_positions.hpp"
#include "../table.hpp"

namespace VG_NAMESPACE {
VG_UNIT_POOL_POSITIONS(VG_EXPORT)
}
