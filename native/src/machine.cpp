// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vg {
namespace {

// Linux tells sizes as "32768K". Not cpuid: there some processors count the caches of all their cores together.
int64_t read_last_cache() {
    int64_t most = 0;
    for (int index = 0; index < 8; ++index) {
        char path[80], unit = 0;
        long long size = 0;
        std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        std::FILE *file = std::fopen(path, "re");
        if (!file) break;
        const int read = std::fscanf(file, "%lld%c", &size, &unit);
        std::fclose(file);
        if (read < 1 || size <= 0 || size > 1 << 30) continue;
        most = std::max<int64_t>(most, unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size);
    }
    return most;
}

std::atomic<bool> halving_allowed{true};

// AMD tells how wide its units are; elsewhere, what can do 64 bytes does them at once.
bool read_halves_vectors() {
#if defined(__x86_64__)
    constexpr unsigned units = 0x8000001A, by_32 = 1 << 2, by_64 = 1 << 3;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(units, &a, &b, &c, &d) && (a & (by_32 | by_64)) == by_32;
#else
    return false;
#endif
}

}  // namespace

// Read once, or twice at the same time: the lock of a static variable could stay locked in a forked child.
int64_t last_cache_bytes() {
    static std::atomic<int64_t> known{-1};
    int64_t bytes = known.load(std::memory_order_relaxed);
    if (bytes < 0) known.store(bytes = read_last_cache(), std::memory_order_relaxed);
    return bytes;
}

bool halves_vectors() {
    static std::atomic<int> known{-1};
    int halves = known.load(std::memory_order_relaxed);
    if (halves < 0) known.store(halves = read_halves_vectors(), std::memory_order_relaxed);
    return halves && halving_allowed.load(std::memory_order_relaxed);
}

void allow_halving(bool allowed) { halving_allowed.store(allowed, std::memory_order_relaxed); }

}  // namespace vg
