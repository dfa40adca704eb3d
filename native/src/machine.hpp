// SPDX-License-Identifier: Apache-2.0
// What the kernels want to know about the machine.
#pragma once

#include <cstdint>

namespace vg {

// Bytes of the largest cache that a core shares with its neighbours; 0 where the system does not say. Always the same.
int64_t last_cache_bytes();

// Whether an instruction on 64 bytes is done as two on 32, and takes as long, and kernels may hand problems over to those
// for 32: not while an instruction set was asked for by name.
bool halves_vectors();
void allow_halving(bool allowed);

}  // namespace vg
