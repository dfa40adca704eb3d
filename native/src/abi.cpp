// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "machine.hpp"
#include "scratch.hpp"
#include "table.hpp"

namespace {

bool has([[maybe_unused]] int32_t isa) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (isa == VG_ISA_AVX2) return avx2;
    if (isa == VG_ISA_AVX512) return avx2 && (avx512 || VG_EMULATED);
#endif
    return true;
}

int32_t sets() {
    int32_t found = 0;
#define VG_BIT(name, number) found |= has(number) ? 1 << number : 0;
    VG_SETS(VG_BIT)
#undef VG_BIT
    return found;
}

bool is_set(int32_t isa) { return isa >= 0 && isa < 31 && (sets() >> isa & 1); }

int32_t best_isa() {
    int32_t best = 0;
    for (int32_t rest = sets(); rest > 1; rest >>= 1) ++best;
    return best;
}

const vg::Kernels *table(int32_t isa) {
#define VG_CASE(name, number) \
    if (isa == number) return &name::kernels;
    VG_SETS(VG_CASE)
#undef VG_CASE
    return nullptr;
}

std::atomic<int32_t> current{VG_ISA_AUTOMATIC};

int32_t isa() {
    int32_t now = current.load(std::memory_order_relaxed);
    if (now == VG_ISA_AUTOMATIC) {
        now = best_isa();
        current.store(now, std::memory_order_relaxed);
    }
    return now;
}

const vg::Kernels &kernels() { return *table(isa()); }

// How many arrays a kernel takes, between its problem and its vg_run.
template <class... Parameters>
constexpr int64_t arrays_of(int32_t (*)(Parameters...)) {
    return sizeof...(Parameters) - 2;
}

}  // namespace

extern "C" {

int32_t vg_abi_version(void) { return VG_ABI_VERSION; }
int32_t vg_isas(void) { return sets(); }
int32_t vg_isa(void) { return isa(); }
int32_t vg_use_isa(int32_t wanted) {
    if (wanted != VG_ISA_AUTOMATIC && !is_set(wanted)) return 0;
    current.store(wanted, std::memory_order_relaxed);
    vg::allow_halving(wanted == VG_ISA_AUTOMATIC);
    return 1;
}

// Written against the declarations in voxgrad.h: one that differs does not compile.
#define VG_ENTRY(name, family, problem, parameters, arguments)                        \
    int64_t vg_##name##_scratch(const problem *p, int32_t threads) {\
        return kernels().name##_scratch(p, threads);                                  \
    }                                                                                 \
    int32_t vg_##name parameters { return kernels().name arguments; }
VG_KERNELS(VG_ENTRY)
#undef VG_ENTRY

int32_t vg_get_ready(vg_ready *ready, const char *name, const void *problem, int32_t threads, int32_t isa) {
    if (isa != VG_ISA_AUTOMATIC && !is_set(isa)) return 0;
    const vg::Kernels &now = *table(isa == VG_ISA_AUTOMATIC ? best_isa() : isa);
    *ready = {nullptr, problem, 0, 0, 0, threads};
#define VG_READY(kernel_name, family, problem_type, parameters, arguments)                               \
    if (!std::strcmp(name, #kernel_name)) {                                                              \
        ready->kernel = reinterpret_cast<void *>(now.kernel_name);                                       \
        ready->count = arrays_of(now.kernel_name);                                                       \
        ready->scratch = now.kernel_name##_scratch(static_cast<const problem_type *>(problem), threads); \
    }
    VG_KERNELS(VG_READY)
#undef VG_READY
    return ready->kernel != nullptr;
}

int32_t vg_call_at(const vg_ready *ready, const void *const *at, const volatile int32_t *cancel) {
    using Two = int32_t (*)(const void *, const void *, const void *, const vg_run *);
    using Three = int32_t (*)(const void *, const void *, const void *, const void *, const vg_run *);
    using Four = int32_t (*)(const void *, const void *, const void *, const void *, const void *, const vg_run *);
    const vg::Scratch scratch(ready->scratch);
    if (!scratch) return VG_NO_MEMORY;
    const vg_run run = {ready->threads, 0, cancel, scratch.memory()};
    if (ready->count == 2) return reinterpret_cast<Two>(ready->kernel)(ready->problem, at[0], at[1], &run);
    if (ready->count == 3) return reinterpret_cast<Three>(ready->kernel)(ready->problem, at[0], at[1], at[2], &run);
    return reinterpret_cast<Four>(ready->kernel)(ready->problem, at[0], at[1], at[2], at[3], &run);
}

int32_t vg_call(const vg_ready *ready, const char *const *arrays) {
    constexpr int dense = 0x1 | 0x100;  // NumPy's flags: C-contiguous, aligned
    const void *at[4];
    for (int64_t i = 0; i < ready->count; ++i) {
        const vg_numpy *array = reinterpret_cast<const vg_numpy *>(arrays[i] + ready->header);
        if ((array->flags & dense) != dense) return VG_NOT_DENSE;
        at[i] = array->data;
    }
    return vg_call_at(ready, at, nullptr);
}

int64_t vg_release_scratch(void) { return vg::release_scratch(); }
}
