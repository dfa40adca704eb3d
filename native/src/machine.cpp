// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <cstdio>

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

}  // namespace

int64_t last_cache_bytes() {
    static const int64_t bytes = read_last_cache();
    return bytes;
}

}  // namespace vg
