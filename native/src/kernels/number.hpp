// SPDX-License-Identifier: Apache-2.0
// Storage types, the type each is summed in, and vectors of the latter. Included once per instruction set, inside
// that set's namespace: nothing here may be shared between object files compiled with different flags.
#pragma once

#include <cstdint>
#include <cstring>
#if VG_VECTOR_BYTES >= 32
#include <immintrin.h>
#endif

#include "../machine.hpp"
#include "paths.hpp"

namespace VG_NAMESPACE {

struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};

inline float widen(f16 v) {
    _Float16 h;
    std::memcpy(&h, &v, 2);
    return static_cast<float>(h);
}
inline float widen(bf16 v) {
    const uint32_t bits = static_cast<uint32_t>(v.bits) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
inline float widen(float v) { return v; }
inline double widen(double v) { return v; }

// Round to nearest, ties to even. A sum of bfloat16 that is NaN has come from one of them or is the processor's own NaN;
// the lower half of either is zero, so that rounding, which is cheaper without a test for it, leaves it as it is.
inline void narrow(float v, f16 *out) {
    const _Float16 h = static_cast<_Float16>(v);
    std::memcpy(out, &h, 2);
}
inline void narrow(float v, bf16 *out) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    out->bits = static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
inline void narrow(float v, float *out) { *out = v; }
inline void narrow(double v, double *out) { *out = v; }

template <class S>
struct Sum {
    using type = float;
};
template <>
struct Sum<double> {
    using type = double;
};
template <class S>
using sum_t = typename Sum<S>::type;

template <class A>
struct Lanes {
    static constexpr int count = VG_VECTOR_BYTES / static_cast<int>(sizeof(A));
    typedef A vector __attribute__((vector_size(VG_VECTOR_BYTES), aligned(sizeof(A)), may_alias));
};
template <class A>
using vec = typename Lanes<A>::vector;
template <class A>
inline constexpr int lanes = Lanes<A>::count;

template <class A>
inline vec<A> splat(A v) {
    return v - vec<A>{};  // v - 0 keeps the sign of zero, unlike v + 0
}

#if VG_VECTOR_BYTES == 64
// Sixteen numbers of 16 bits as the upper halves of 32, and back: one instruction each, where shifting and widening or
// narrowing take two or three.
inline __m512i upper_halves(__m256i v) {
    const __m512i from = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_slli_epi32(from, 16), _mm512_castsi256_si512(v));
}
inline __m256i of_upper_halves(__m512i v) {
    const __m512i from = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x1f001d, 0x1b0019, 0x170015, 0x130011,  //
                                          0xf000d, 0xb0009, 0x70005, 0x30001);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi16(from, v));
}
#endif

// The bits of floats, the upper halves of which are rounded as above.
typedef uint32_t wide_bits __attribute__((vector_size(VG_VECTOR_BYTES), aligned(2), may_alias));
inline wide_bits rounded_upper_halves(vec<float> v) {
    const wide_bits bits = (wide_bits)v;
#if VG_VECTOR_BYTES == 64
    // bits - ~(0x7ffe + odd) is bits + 0x7fff + odd, and ~((high & 1) | 0x7ffe) is one instruction.
    const __m512i high = _mm512_srli_epi32((__m512i)bits, 16), tie = _mm512_set1_epi32(0x7ffe);
    return bits - (wide_bits)_mm512_ternarylogic_epi32(high, _mm512_set1_epi32(1), tie, 0x15);
#else
    return bits + 0x7fffu + (bits >> 16 & 1u);
#endif
}

// A vector of 16-bit numbers in their own form, widened and rounded. bfloat16 is the upper half of a float.
#if VG_VECTOR_BYTES == 64
template <class S>
inline vec<float> of_half(__m256i v) {
    if constexpr (__is_same(S, f16)) return (vec<float>)_mm512_cvtph_ps(v);
    return (vec<float>)upper_halves(v);
}
template <class S>
inline __m256i to_half(vec<float> v) {
    if constexpr (__is_same(S, f16)) return _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return of_upper_halves((__m512i)rounded_upper_halves(v));
}
#elif VG_VECTOR_BYTES == 32
template <class S>
inline vec<float> of_half(__m128i v) {
    if constexpr (__is_same(S, f16)) return (vec<float>)_mm256_cvtph_ps(v);
    return (vec<float>)_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16);
}
template <class S>
inline __m128i to_half(vec<float> v) {
    if constexpr (__is_same(S, f16)) return _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i all = (__m256i)(rounded_upper_halves(v) >> 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
#endif

// A vector of bfloat16 as two of floats, those at even places and those at odd ones, and back: what is done to numbers one
// by one need not have them in order, which costs more than to tell halves apart. What is a bfloat16 already need not be
// rounded.
inline void load_apart(const bf16 *p, vec<float> &even, vec<float> &odd) {
    const wide_bits both = *reinterpret_cast<const wide_bits *>(p);
    even = (vec<float>)(both << 16), odd = (vec<float>)(both & 0xffff0000u);
}
template <bool rounds>
inline wide_bits joined_bits(vec<float> even, vec<float> odd) {
    if constexpr (!rounds) return (wide_bits)even >> 16 | ((wide_bits)odd & 0xffff0000u);
    return rounded_upper_halves(even) >> 16 | (rounded_upper_halves(odd) & 0xffff0000u);
}

// A full vector of storage elements, widened to their sum type.
template <class S>
inline vec<sum_t<S>> load(const S *p) {
    using A = sum_t<S>;
    if constexpr (sizeof(S) == sizeof(A)) {
        return *reinterpret_cast<const vec<A> *>(p);
    } else {
#if VG_VECTOR_BYTES == 64
        return of_half<S>(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
#elif VG_VECTOR_BYTES == 32
        return of_half<S>(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
#else
        vec<A> v;
        for (int i = 0; i < lanes<A>; ++i) v[i] = widen(p[i]);
        return v;
#endif
    }
}

template <class S>
inline void store(S *p, vec<sum_t<S>> v) {
    using A = sum_t<S>;
    if constexpr (sizeof(S) == sizeof(A)) {
        *reinterpret_cast<vec<A> *>(p) = v;
    } else {
#if VG_VECTOR_BYTES == 64
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), to_half<S>(v));
#elif VG_VECTOR_BYTES == 32
        _mm_storeu_si128(reinterpret_cast<__m128i *>(p), to_half<S>(v));
#else
        if constexpr (__is_same(S, bf16)) {
            typedef uint16_t half __attribute__((vector_size(VG_VECTOR_BYTES / 2), aligned(2), may_alias));
            *reinterpret_cast<half *>(p) = __builtin_convertvector(rounded_upper_halves(v) >> 16, half);
        } else {
            for (int i = 0; i < lanes<A>; ++i) narrow(v[i], p + i);
        }
#endif
    }
}

// Whether to store a result past the caches: it is too large to be found there again, and all vectors are aligned.
// `unit` is any common divisor of the distances between them, or several of these joined by |.
inline bool goes_past(const vg_how &how, const void *result, int64_t bytes, int64_t unit, bool worth = true) {
    const uintptr_t places = reinterpret_cast<uintptr_t>(result) | static_cast<uintptr_t>(unit);
    return takes(how, Path::past, VG_VECTOR_BYTES >= 32 && places % VG_VECTOR_BYTES == 0, bytes >= 8 << 20 && worth);
}

// The same for what is bound by memory: not if all that is touched can stay in the last cache. Where it is mostly a result
// that is written from its first element to its last, the cache keeps a part of it also if it is a little larger.
inline bool writes_past(const vg_how &how, const void *result, int64_t bytes, int64_t unit, int64_t touched,
                        bool in_order = false) {
    const int64_t cache = vg::last_cache_bytes();
    return goes_past(how, result, bytes, unit, touched > (in_order ? cache / 4 * 5 : cache / 3 * 2));
}
// Stores a vector so. Before another thread may read it, `settle`.
template <class A>
inline void store_past(A *p, vec<A> v) {
#if VG_VECTOR_BYTES == 64
    _mm512_stream_si512(reinterpret_cast<__m512i *>(p), (__m512i)v);
#elif VG_VECTOR_BYTES == 32
    _mm256_stream_si256(reinterpret_cast<__m256i *>(p), (__m256i)v);
#else
    *reinterpret_cast<vec<A> *>(p) = v;
#endif
}
inline void settle() {
#if VG_VECTOR_BYTES >= 32
    _mm_sfence();
#endif
}
// The first n < lanes elements; the rest of the vector is zero.
template <class S>
inline vec<sum_t<S>> load_part(const S *p, int n) {
#if VG_VECTOR_BYTES == 64
    if constexpr (__is_same(S, float)) return (vec<float>)_mm512_maskz_loadu_ps((1u << n) - 1, p);
    if constexpr (__is_same(S, double)) return (vec<double>)_mm512_maskz_loadu_pd((1u << n) - 1, p);
#endif
    vec<sum_t<S>> v = {};
    for (int i = 0; i < n; ++i) v[i] = widen(p[i]);
    return v;
}
template <class S>
inline void store_part(S *p, vec<sum_t<S>> v, int n) {
#if VG_VECTOR_BYTES == 64
    if constexpr (__is_same(S, float)) return _mm512_mask_storeu_ps(p, (1u << n) - 1, (__m512)v);
    if constexpr (__is_same(S, double)) return _mm512_mask_storeu_pd(p, (1u << n) - 1, (__m512d)v);
#endif
    S whole[lanes<sum_t<S>>];
    store(whole, v);
    std::memcpy(p, whole, n * sizeof(S));
}

}  // namespace VG_NAMESPACE
