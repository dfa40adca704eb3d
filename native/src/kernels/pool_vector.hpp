// SPDX-License-Identifier: Apache-2.0
// Vectors for the pools: whole and partial loads, comparisons, and masks in the form the instruction set likes best.
#pragma once

#include <limits>

#include "number.hpp"

namespace VG_NAMESPACE::pool {

// How much of a vector a step touches.
struct All {};
struct Some {
    int n;
};

// step(i, All or Some) for every vector of `lane_count` elements in 0..length-1.
template <int lane_count, class Step>
inline __attribute__((always_inline)) void each_vector(int64_t length, Step &&step) {
    int64_t i = 0;
    for (; i + lane_count <= length; i += lane_count) step(i, All{});
    if (i < length) step(i, Some{static_cast<int>(length - i)});
}

#if VG_VECTOR_BYTES == 64
template <int lane_count>
using bitmask = std::conditional_t<lane_count == 64, __mmask64,
                                   std::conditional_t<lane_count == 32, __mmask32,
                                                      std::conditional_t<lane_count == 16, __mmask16, __mmask8>>>;
template <int lane_count>
inline bitmask<lane_count> first_lanes(All) {
    return static_cast<bitmask<lane_count>>(~0ull);
}
template <int lane_count>
inline bitmask<lane_count> first_lanes(Some part) {
    return static_cast<bitmask<lane_count>>((1ull << part.n) - 1);
}
#endif

// ---- vectors of sums ----

template <class S>
inline vec<sum_t<S>> get(const S *p, All) {
    return load(p);
}

template <class S>
inline vec<sum_t<S>> get(const S *p, Some part) {
    using A = sum_t<S>;
#if VG_VECTOR_BYTES == 64
    const auto mask = first_lanes<lanes<A>>(part);
    if constexpr (__is_same(S, float)) {
        return (vec<A>)_mm512_maskz_loadu_ps(mask, p);
    } else if constexpr (__is_same(S, double)) {
        return (vec<A>)_mm512_maskz_loadu_pd(mask, p);
    } else {
        const __m256i raw = _mm256_maskz_loadu_epi16(mask, p);
        if constexpr (__is_same(S, f16)) return (vec<A>)_mm512_cvtph_ps(raw);
        return (vec<A>)_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16);
    }
#elif VG_VECTOR_BYTES == 32
    if constexpr (__is_same(S, float)) {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return (vec<A>)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(part.n), lane));
    }
#endif
    S whole[lanes<A>] = {};
    for (int i = 0; i < part.n; ++i) whole[i] = p[i];
    return load(whole);
}

#if VG_VECTOR_BYTES >= 32
// bfloat16 keeps the upper half of a float, rounded to nearest even; a NaN must not round to infinity.
#if VG_VECTOR_BYTES == 64
inline __m256i to_bf16(vec<float> v) {
    const __m512i bits = (__m512i)v;
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(near, nan, quiet), 16));
}
#else
inline __m128i to_bf16(vec<float> v) {
    const __m256i bits = (__m256i)v;
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = (__m256i)_mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i all = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
#endif
#endif

template <class S>
inline void put(S *p, vec<sum_t<S>> v, All) {
#if VG_VECTOR_BYTES == 64
    if constexpr (__is_same(S, bf16)) {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), to_bf16(v));
        return;
    }
#elif VG_VECTOR_BYTES == 32
    if constexpr (__is_same(S, bf16)) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(p), to_bf16(v));
        return;
    }
#endif
    store(p, v);
}

template <class S>
inline void put(S *p, vec<sum_t<S>> v, Some part) {
#if VG_VECTOR_BYTES == 64
    const auto mask = first_lanes<lanes<sum_t<S>>>(part);
    if constexpr (__is_same(S, float)) {
        _mm512_mask_storeu_ps(p, mask, (__m512)v);
    } else if constexpr (__is_same(S, double)) {
        _mm512_mask_storeu_pd(p, mask, (__m512d)v);
    } else if constexpr (__is_same(S, bf16)) {
        _mm256_mask_storeu_epi16(p, mask, to_bf16(v));
    } else {
        _mm256_mask_storeu_epi16(p, mask, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
#else
    S whole[lanes<sum_t<S>>];
    put(whole, v, All{});
    for (int i = 0; i < part.n; ++i) p[i] = whole[i];
#endif
}

// Past the caches: for outputs so large that nobody will find them there. `p` is aligned to the bytes it takes.
template <class S>
inline void put_past(S *p, vec<sum_t<S>> v) {
#if VG_VECTOR_BYTES == 64
    if constexpr (sizeof(S) == sizeof(sum_t<S>)) {
        _mm512_stream_si512(reinterpret_cast<__m512i *>(p), (__m512i)v);
    } else if constexpr (__is_same(S, bf16)) {
        _mm256_stream_si256(reinterpret_cast<__m256i *>(p), to_bf16(v));
    } else {
        _mm256_stream_si256(reinterpret_cast<__m256i *>(p),
                            _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
#elif VG_VECTOR_BYTES == 32
    if constexpr (sizeof(S) == sizeof(sum_t<S>)) {
        _mm256_stream_si256(reinterpret_cast<__m256i *>(p), (__m256i)v);
    } else {
        put(p, v, All{});
    }
#else
    put(p, v, All{});
#endif
}
inline void end_of_puts_past() {
#if VG_VECTOR_BYTES >= 32
    _mm_sfence();
#endif
}

// `v` where it is larger, else `best`: a NaN in `v` never wins.
template <class A>
inline vec<A> larger(vec<A> v, vec<A> best) {
#if VG_VECTOR_BYTES == 64
    if constexpr (__is_same(A, float)) return (vec<A>)_mm512_max_ps((__m512)v, (__m512)best);
    if constexpr (__is_same(A, double)) return (vec<A>)_mm512_max_pd((__m512d)v, (__m512d)best);
#elif VG_VECTOR_BYTES == 32
    if constexpr (__is_same(A, float)) return (vec<A>)_mm256_max_ps((__m256)v, (__m256)best);
    if constexpr (__is_same(A, double)) return (vec<A>)_mm256_max_pd((__m256d)v, (__m256d)best);
#endif
    return v > best ? v : best;
}

}  // namespace VG_NAMESPACE::pool
