// SPDX-License-Identifier: Apache-2.0
// Vectors for the pools: whole and partial loads, comparisons, and masks in the form the instruction set likes best.
#pragma once

#include <limits>
#include <type_traits>

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
        return of_half<S>(_mm256_maskz_loadu_epi16(mask, p));
    }
#elif VG_VECTOR_BYTES == 32
    if constexpr (__is_same(S, float)) {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return (vec<A>)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(part.n), lane));
    } else if constexpr (__is_same(S, double)) {
        const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
        return (vec<A>)_mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(part.n), lane));
    } else if constexpr (sizeof(S) == 2) {  // pairs, and the last one, which may have none
        const __m128i pair = _mm_setr_epi32(1, 3, 5, 7), lane = _mm_setr_epi16(1, 2, 3, 4, 5, 6, 7, 8);
        const __m128i count = _mm_set1_epi32(part.n), last = _mm_set1_epi16(static_cast<short>(part.n));
        const __m128i pairs = _mm_maskload_epi32(reinterpret_cast<const int *>(p), _mm_cmpgt_epi32(count, pair));
        const __m128i end = _mm_set1_epi16(static_cast<short>(p[part.n - 1].bits));
        return of_half<S>(_mm_blendv_epi8(pairs, end, _mm_cmpeq_epi16(last, lane)));
    }
#endif
    S whole[lanes<A>] = {};
    for (int i = 0; i < part.n; ++i) whole[i] = p[i];
    return load(whole);
}

template <class S>
inline void put(S *p, vec<sum_t<S>> v, All) {
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
    } else {
        _mm256_mask_storeu_epi16(p, mask, to_half<S>(v));
    }
#else
    S whole[lanes<sum_t<S>>];
    put(whole, v, All{});
    for (int i = 0; i < part.n; ++i) p[i] = whole[i];
#endif
}

// Past the caches (number.hpp). `p` is aligned to the bytes it takes.
template <class S>
inline void put_past(S *p, vec<sum_t<S>> v) {
    if constexpr (sizeof(S) == sizeof(sum_t<S>)) {
        store_past(p, v);
    } else {
#if VG_VECTOR_BYTES == 64
        _mm256_stream_si256(reinterpret_cast<__m256i *>(p), to_half<S>(v));
#else
        store(p, v);
#endif
    }
}

// Vectors side by side, whose numbers may lie in any order until they are put back: whole ones of bfloat16 are taken apart
// two by two (number.hpp).
template <class S, int n, class Part>
inline constexpr bool takes_apart = __is_same(S, bf16) && __is_same(Part, All) && n % 2 == 0;

template <int n, class S, class Part>
inline __attribute__((always_inline)) void get_several(const S *p, vec<sum_t<S>> (&v)[n], Part part) {
    constexpr int L = lanes<sum_t<S>>;
    if constexpr (takes_apart<S, n, Part>) {
#pragma GCC unroll 8
        for (int j = 0; j < n; j += 2) load_apart(p + j * L, v[j], v[j + 1]);
    } else {
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) v[j] = get(p + j * L, part);
    }
}
template <int n, bool rounds, class S, class Part>
inline __attribute__((always_inline)) void put_several(S *p, const vec<sum_t<S>> *v, Part part, bool past) {
    constexpr int L = lanes<sum_t<S>>;
    if constexpr (takes_apart<S, n, Part>) {
        past = past && VG_VECTOR_BYTES == 64;  // what goes past the caches must fill lines
#pragma GCC unroll 8
        for (int j = 0; j < n; j += 2) {
            const wide_bits both = joined_bits<rounds>(v[j], v[j + 1]);
            if (past) store_past(reinterpret_cast<uint32_t *>(p + j * L), (vec<uint32_t>)both);
            else *reinterpret_cast<wide_bits *>(p + j * L) = both;
        }
    } else {
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) {
            if constexpr (__is_same(Part, All)) past ? put_past(p + j * L, v[j]) : put(p + j * L, v[j], part);
            else put(p + j * L, v[j], part);
        }
    }
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

// ---- vectors of stored elements, compared and copied but never summed ----

template <int bytes>
using unsigned_of = std::conditional_t<bytes == 1, uint8_t,
                                       std::conditional_t<bytes == 2, uint16_t,
                                                          std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;
template <class T>
inline constexpr bool is_half = __is_same(T, f16) || __is_same(T, bf16);

// 16-bit floats are compared as bits, so that a vector holds as many as there is room for.
template <class S>
using lane = std::conditional_t<is_half<S>, uint16_t, S>;

template <class S>
inline vec<lane<S>> get_raw(const S *p, All) {
    return *reinterpret_cast<const vec<lane<S>> *>(p);
}
template <class S>
inline vec<lane<S>> get_raw(const S *p, Some part) {
    constexpr int n = VG_VECTOR_BYTES / sizeof(S);
#if VG_VECTOR_BYTES == 64
    const auto mask = first_lanes<n>(part);
    if constexpr (sizeof(S) == 1) return (vec<lane<S>>)_mm512_maskz_loadu_epi8(mask, p);
    if constexpr (sizeof(S) == 2) return (vec<lane<S>>)_mm512_maskz_loadu_epi16(mask, p);
    if constexpr (sizeof(S) == 4) return (vec<lane<S>>)_mm512_maskz_loadu_epi32(mask, p);
    if constexpr (sizeof(S) == 8) return (vec<lane<S>>)_mm512_maskz_loadu_epi64(mask, p);
#else
    S whole[n] = {};
    for (int i = 0; i < part.n; ++i) whole[i] = p[i];
    return get_raw(whole, All{});
#endif
}
template <class S>
inline void put_raw(S *p, vec<lane<S>> v, All) {
    *reinterpret_cast<vec<lane<S>> *>(p) = v;
}
template <class S>
inline void put_raw(S *p, vec<lane<S>> v, Some part) {
    constexpr int n = VG_VECTOR_BYTES / sizeof(S);
#if VG_VECTOR_BYTES == 64
    const auto mask = first_lanes<n>(part);
    if constexpr (sizeof(S) == 1) _mm512_mask_storeu_epi8(p, mask, (__m512i)v);
    if constexpr (sizeof(S) == 2) _mm512_mask_storeu_epi16(p, mask, (__m512i)v);
    if constexpr (sizeof(S) == 4) _mm512_mask_storeu_epi32(p, mask, (__m512i)v);
    if constexpr (sizeof(S) == 8) _mm512_mask_storeu_epi64(p, mask, (__m512i)v);
#else
    S whole[n];
    put_raw(whole, v, All{});
    for (int i = 0; i < part.n; ++i) p[i] = whole[i];
#endif
}
template <class S>
inline void put_raw_past(S *p, vec<lane<S>> v) {
    store_past(reinterpret_cast<lane<S> *>(p), v);
}

template <class T>
inline vec<T> all_lanes(T v) {
    return v - vec<T>{};
}

#if VG_VECTOR_BYTES == 64
template <class T>
using mask = bitmask<lanes<T>>;

template <class T>
inline mask<T> equal(vec<T> a, vec<T> b) {
    if constexpr (__is_same(T, float)) {
        return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
    } else if constexpr (__is_same(T, double)) {
        return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ);
    } else if constexpr (sizeof(T) == 1) {
        return _mm512_cmpeq_epi8_mask((__m512i)a, (__m512i)b);
    } else if constexpr (sizeof(T) == 2) {
        return _mm512_cmpeq_epi16_mask((__m512i)a, (__m512i)b);
    } else if constexpr (sizeof(T) == 4) {
        return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
    } else {
        return _mm512_cmpeq_epi64_mask((__m512i)a, (__m512i)b);
    }
}
template <class A>
inline mask<A> less(vec<A> a, vec<A> b) {
    if constexpr (__is_same(A, float)) return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ);
}
template <class A>
inline mask<A> at_least(vec<A> a, vec<A> b) {
    if constexpr (__is_same(A, float)) return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ);
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GE_OQ);
}
template <class T, class M>
inline vec<T> choose(M m, vec<T> a, vec<T> b) {
    if constexpr (sizeof(T) == 1) return (vec<T>)_mm512_mask_mov_epi8((__m512i)b, m, (__m512i)a);
    if constexpr (sizeof(T) == 2) return (vec<T>)_mm512_mask_mov_epi16((__m512i)b, m, (__m512i)a);
    if constexpr (sizeof(T) == 4) return (vec<T>)_mm512_mask_mov_epi32((__m512i)b, m, (__m512i)a);
    if constexpr (sizeof(T) == 8) return (vec<T>)_mm512_mask_mov_epi64((__m512i)b, m, (__m512i)a);
}
template <class A>
inline vec<A> add_where(mask<A> m, vec<A> sum, vec<A> v) {
    if constexpr (__is_same(A, float)) return (vec<A>)_mm512_mask_add_ps((__m512)sum, m, (__m512)sum, (__m512)v);
    return (vec<A>)_mm512_mask_add_pd((__m512d)sum, m, (__m512d)sum, (__m512d)v);
}
// a and not b
template <class M>
inline M without(M a, M b) {
    return static_cast<M>(a & ~b);
}
template <class T>
inline mask<T> every_lane() {
    return static_cast<mask<T>>(~0ull);
}
template <class M>
inline M both(M a, M b) {
    return static_cast<M>(a & b);
}
#else
template <class T>
using mask = vec<std::make_signed_t<unsigned_of<sizeof(T)>>>;

template <class T>
inline mask<T> equal(vec<T> a, vec<T> b) {
    return (mask<T>)(a == b);
}
template <class A>
inline mask<A> less(vec<A> a, vec<A> b) {
    return (mask<A>)(a < b);
}
template <class A>
inline mask<A> at_least(vec<A> a, vec<A> b) {
    return (mask<A>)(a >= b);
}
template <class T, class M>
inline vec<T> choose(M m, vec<T> a, vec<T> b) {
#if VG_VECTOR_BYTES == 32
    return (vec<T>)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
#endif
    return (vec<T>)((m & (M)a) | (~m & (M)b));
}
template <class A>
inline vec<A> add_where(mask<A> m, vec<A> sum, vec<A> v) {
    return sum + (vec<A>)(m & (mask<A>)v);
}
template <class M>
inline M without(M a, M b) {
    return a & ~b;
}
template <class T>
inline mask<T> every_lane() {
    return ~mask<T>{};
}
template <class M>
inline M both(M a, M b) {
    return a & b;
}
#endif

template <int lane_count>
constexpr int lanes_of(All) {
    return lane_count;
}
template <int lane_count>
constexpr int lanes_of(Some part) {
    return part.n;
}
// Whether a mask over sums is set wherever a step touches.
template <class A, class Part>
inline bool all_of(mask<A> m, Part part) {
    constexpr int n = lanes<A>;
#if VG_VECTOR_BYTES == 64
    const unsigned bits = m;
#elif VG_VECTOR_BYTES == 32
    const unsigned bits = sizeof(A) == 4 ? _mm256_movemask_ps((__m256)m) : _mm256_movemask_pd((__m256d)m);
#else
    unsigned bits = 0;
    for (int i = 0; i < n; ++i) bits |= (m[i] ? 1u : 0u) << i;
#endif
    const unsigned wanted = (1u << lanes_of<n>(part)) - 1;
    return (bits & wanted) == wanted;
}

// ---- codes: where in its window a cell lies; narrow in memory, as wide as the elements beside them in registers ----

template <class T>
using code_lane = unsigned_of<sizeof(T)>;

template <class T, class Code, class Part>
inline void put_codes(Code *p, vec<code_lane<T>> v, Part part) {
    constexpr int n = lanes<T>;
    if constexpr (sizeof(Code) == sizeof(T)) {
        put_raw(p, v, part);
    } else {
        typedef Code narrow __attribute__((vector_size(n * sizeof(Code))));
        const narrow codes = __builtin_convertvector(v, narrow);
        if constexpr (__is_same(Part, All)) {
            std::memcpy(p, &codes, sizeof codes);
        } else {
#if VG_VECTOR_BYTES == 64
            if constexpr (sizeof(codes) == 16 && sizeof(Code) == 1)
                return _mm_mask_storeu_epi8(p, first_lanes<16>(part), (__m128i)codes);
            if constexpr (sizeof(codes) == 32 && sizeof(Code) == 1)
                return _mm256_mask_storeu_epi8(p, first_lanes<32>(part), (__m256i)codes);
#endif
            for (int i = 0; i < part.n; ++i) p[i] = codes[i];
        }
    }
}

// Which of the codes at p are `code`, as a mask over sums.
template <class A, class Code, class Part>
inline mask<A> codes_are(const Code *p, Code code, Part part) {
    constexpr int n = lanes<A>;
#if VG_VECTOR_BYTES == 64
    if constexpr (sizeof(Code) == 1) {
        __m128i codes;
        if constexpr (!__is_same(Part, All)) {
            codes = _mm_maskz_loadu_epi8(first_lanes<16>(part), p);
        } else if constexpr (n == 16) {
            codes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
        } else {
            codes = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p));
        }
        return static_cast<mask<A>>(_mm_cmpeq_epi8_mask(codes, _mm_set1_epi8(static_cast<char>(code))));
    } else if constexpr (n == 16) {
        return _mm512_cmpeq_epi32_mask((__m512i)get_raw(p, part), _mm512_set1_epi32(static_cast<int>(code)));
    }
#endif
    typedef Code narrow __attribute__((vector_size(n * sizeof(Code))));
    narrow codes = {};
    if constexpr (__is_same(Part, All)) {
        std::memcpy(&codes, p, sizeof codes);
    } else {
        for (int i = 0; i < part.n; ++i) codes[i] = p[i];
    }
    using Wide = code_lane<A>;
    return equal<Wide>(__builtin_convertvector(codes, vec<Wide>), all_lanes<Wide>(code));
}

}  // namespace VG_NAMESPACE::pool
