// SPDX-License-Identifier: Apache-2.0
// What the kernels want to know about the machine.
#pragma once

#include <cstdint>

namespace vg {

// Bytes of the largest cache that a core shares with its neighbours; 0 where the system does not say. Always the same.
int64_t last_cache_bytes();

}  // namespace vg
