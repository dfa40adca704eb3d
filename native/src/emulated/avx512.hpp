// SPDX-License-Identifier: Apache-2.0
// The AVX-512 instructions that the kernels use, lane by lane, for machines without them: with these the paths of the
// widest vectors are tested everywhere (python3 run test --sweep --emulate). What a register holds by chance is poison
// here, and what a processor faults on traps.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace VG_NAMESPACE::emulated {

template <class Lane, class Vector>
inline Lane lane_of(const Vector &v, int i) {
    Lane lane;
    std::memcpy(&lane, reinterpret_cast<const char *>(&v) + i * sizeof(Lane), sizeof lane);
    return lane;
}
template <class Vector, class Lane, class Each>
inline Vector made_of(Each &&each) {
    Lane all[sizeof(Vector) / sizeof(Lane)];
    for (int i = 0; i < static_cast<int>(sizeof(Vector) / sizeof(Lane)); ++i) all[i] = each(i);
    Vector v;
    std::memcpy(&v, all, sizeof v);
    return v;
}
inline bool has(uint64_t mask, int i) { return mask >> i & 1; }

template <class Vector, class Lane>
inline Vector load(uint64_t mask, const void *p) {
    return made_of<Vector, Lane>([&](int i) {
        Lane lane{};
        if (has(mask, i)) std::memcpy(&lane, static_cast<const char *>(p) + i * sizeof(Lane), sizeof lane);
        return lane;
    });
}
template <class Lane, class Vector>
inline void store(void *p, uint64_t mask, Vector v) {
    for (int i = 0; i < static_cast<int>(sizeof(Vector) / sizeof(Lane)); ++i) {
        const Lane lane = lane_of<Lane>(v, i);
        if (has(mask, i)) std::memcpy(static_cast<char *>(p) + i * sizeof(Lane), &lane, sizeof lane);
    }
}
template <class Vector>
inline void store_aligned(void *p, Vector v) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof v) __builtin_trap();
    std::memcpy(p, &v, sizeof v);
}
template <class Lane, class Vector>
inline uint64_t compared(Vector a, Vector b, int how) {
    uint64_t mask = 0;
    for (int i = 0; i < static_cast<int>(sizeof(Vector) / sizeof(Lane)); ++i) {
        const Lane x = lane_of<Lane>(a, i), y = lane_of<Lane>(b, i);
        const bool is = how == _CMP_EQ_OQ ? x == y : how == _CMP_LT_OQ ? x < y : x >= y;
        mask |= static_cast<uint64_t>(is) << i;
    }
    return mask;
}
template <class Lane, class Vector>
inline Vector chosen(Vector otherwise, uint64_t mask, Vector v) {
    return made_of<Vector, Lane>([&](int i) { return has(mask, i) ? lane_of<Lane>(v, i) : lane_of<Lane>(otherwise, i); });
}
template <class Lane, class Vector>
inline Vector sum(Vector a, Vector b) {
    return made_of<Vector, Lane>([&](int i) { return lane_of<Lane>(a, i) + lane_of<Lane>(b, i); });
}
template <class Lane, class Vector>
inline Vector larger(Vector a, Vector b) {  // the second where they are equal or not ordered
    return made_of<Vector, Lane>([&](int i) {
        const Lane x = lane_of<Lane>(a, i), y = lane_of<Lane>(b, i);
        return x > y ? x : y;
    });
}
inline __m512i permuted(uint64_t mask, __m512i from, __m512i v) {
    return made_of<__m512i, uint16_t>([&](int i) -> uint16_t {
        return has(mask, i) ? lane_of<uint16_t>(v, lane_of<uint16_t>(from, i) & 31) : 0;
    });
}
template <class... Lanes>
inline __m512i listed(Lanes... last_first) {
    const int all[] = {last_first...};
    return made_of<__m512i, int>([&](int i) { return all[15 - i]; });
}
inline __m512i bits_of(__m512i a, __m512i b, __m512i c, int table) {
    return made_of<__m512i, uint32_t>([&](int i) {
        uint32_t bits = 0;
        for (int k = 0; k < 8; ++k) {
            const uint32_t x = lane_of<uint32_t>(a, i), y = lane_of<uint32_t>(b, i), z = lane_of<uint32_t>(c, i);
            if (table >> k & 1) bits |= (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
        }
        return bits;
    });
}
inline __m512i shifted(__m512i v, int left) {
    return made_of<__m512i, uint32_t>([&](int i) {
        const uint32_t lane = lane_of<uint32_t>(v, i);
        return left < 0 ? lane >> -left : lane << left;
    });
}
inline __m512 widened(__m256i v) {
    const __m256 half[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(v)), _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1))};
    return lane_of<__m512>(half, 0);
}
inline __m256i narrowed(__m512 v) {
    const __m128i half[2] = {_mm256_cvtps_ph(lane_of<__m256>(v, 0), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                             _mm256_cvtps_ph(lane_of<__m256>(v, 1), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    return lane_of<__m256i>(half, 0);
}
inline __m512i lengthened(__m256i v) {
    const __m256i half[2] = {v, _mm256_set1_epi16(0x7fc1)};  // a NaN in both 16-bit types
    return lane_of<__m512i>(half, 0);
}

}  // namespace VG_NAMESPACE::emulated

#define _mm512_max_ps emulated::larger<float>
#define _mm512_max_pd emulated::larger<double>
#define _mm512_mask_add_ps(otherwise, mask, a, b) \
    emulated::chosen<float>((__m512)(otherwise), mask, emulated::sum<float>((__m512)(a), (__m512)(b)))
#define _mm512_mask_add_pd(otherwise, mask, a, b) \
    emulated::chosen<double>((__m512d)(otherwise), mask, emulated::sum<double>((__m512d)(a), (__m512d)(b)))
#define _mm512_maskz_loadu_ps emulated::load<__m512, float>
#define _mm512_maskz_loadu_pd emulated::load<__m512d, double>
#define _mm512_maskz_loadu_epi8 emulated::load<__m512i, uint8_t>
#define _mm512_maskz_loadu_epi16 emulated::load<__m512i, uint16_t>
#define _mm512_maskz_loadu_epi32 emulated::load<__m512i, uint32_t>
#define _mm512_maskz_loadu_epi64 emulated::load<__m512i, uint64_t>
#define _mm256_maskz_loadu_epi16 emulated::load<__m256i, uint16_t>
#define _mm_maskz_loadu_epi8 emulated::load<__m128i, uint8_t>
#define _mm512_mask_storeu_ps emulated::store<float>
#define _mm512_mask_storeu_pd emulated::store<double>
#define _mm512_mask_storeu_epi8 emulated::store<uint8_t>
#define _mm512_mask_storeu_epi16 emulated::store<uint16_t>
#define _mm512_mask_storeu_epi32 emulated::store<uint32_t>
#define _mm512_mask_storeu_epi64 emulated::store<uint64_t>
#define _mm256_mask_storeu_epi16 emulated::store<uint16_t>
#define _mm256_mask_storeu_epi8 emulated::store<uint8_t>
#define _mm_mask_storeu_epi8 emulated::store<uint8_t>
#define _mm512_stream_si512 emulated::store_aligned
#undef _mm512_cmp_ps_mask  // macros of the compiler's, which knows them for functions only where it optimizes
#undef _mm512_cmp_pd_mask
#undef _mm512_cvtps_ph
#undef _mm512_ternarylogic_epi32
#undef _mm512_slli_epi32
#undef _mm512_srli_epi32
#define _mm512_cmp_ps_mask emulated::compared<float>
#define _mm512_cmp_pd_mask emulated::compared<double>
#define _mm512_cmpeq_epi8_mask(a, b) emulated::compared<uint8_t>(a, b, _CMP_EQ_OQ)
#define _mm512_cmpeq_epi16_mask(a, b) emulated::compared<uint16_t>(a, b, _CMP_EQ_OQ)
#define _mm512_cmpeq_epi32_mask(a, b) emulated::compared<uint32_t>(a, b, _CMP_EQ_OQ)
#define _mm512_cmpeq_epi64_mask(a, b) emulated::compared<uint64_t>(a, b, _CMP_EQ_OQ)
#define _mm_cmpeq_epi8_mask(a, b) emulated::compared<uint8_t>(a, b, _CMP_EQ_OQ)
#define _mm512_mask_mov_epi8 emulated::chosen<uint8_t>
#define _mm512_mask_mov_epi16 emulated::chosen<uint16_t>
#define _mm512_mask_mov_epi32 emulated::chosen<uint32_t>
#define _mm512_mask_mov_epi64 emulated::chosen<uint64_t>
#define _mm512_set1_epi32(v) emulated::made_of<__m512i, int>([&](int) { return v; })
#define _mm512_set_epi32 emulated::listed
#define _mm512_castsi256_si512 emulated::lengthened
#define _mm512_castsi512_si256(v) emulated::lane_of<__m256i>(v, 0)
#define _mm512_maskz_permutexvar_epi16 emulated::permuted
#define _mm512_permutexvar_epi16(from, v) emulated::permuted(~0ull, from, v)
#define _mm512_slli_epi32(v, by) emulated::shifted(v, by)
#define _mm512_srli_epi32(v, by) emulated::shifted(v, -(by))
#define _mm512_ternarylogic_epi32 emulated::bits_of
#define _mm512_cvtph_ps emulated::widened
#define _mm512_cvtps_ph(v, rounding) emulated::narrowed(v)
#define asm(...) static_cast<void>(0)  // what only keeps a vector in a register, which these do not fit into
