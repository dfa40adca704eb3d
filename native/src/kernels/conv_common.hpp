// SPDX-License-Identifier: Apache-2.0
// What the three convolutions share: where a tensor's elements lie, and the choice of the element type.
#pragma once

#include "../../include/voxgrad.h"
#include "../threads.hpp"
#include "number.hpp"

namespace VG_NAMESPACE::conv {

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t pieces(int64_t total, int64_t piece) { return piece == 1 ? total : (total + piece - 1) / piece; }
inline int64_t clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }
// Rounds towards minus infinity; b > 0. A division costs as much as a small tile, and b is 1 without strides.
inline int64_t floor_div(int64_t a, int64_t b) { return b == 1 ? a : a / b - (a % b < 0); }
inline int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// Lists of integers for pack expansion: std:: templates compiled for a wide instruction set must not be shared with
// objects compiled for a narrow one.
template <int...>
struct int_list {};
template <int n, int... i>
struct int_range_of : int_range_of<n - 1, n - 1, i...> {};
template <int... i>
struct int_range_of<0, i...> {
    using type = int_list<i...>;
};
template <int n>
using int_range = typename int_range_of<n>::type;

// Distances, in elements, between neighbours of an activation tensor along each of its axes.
struct Strides {
    int64_t batch, space[3], channel;
};

inline Strides strides_of(const vg_conv *p, int64_t channels, int64_t depth, int64_t height, int64_t width) {
    const int64_t last = p->channels_last ? channels : 1;
    return {depth * height * width * channels,
            {height * width * last, width * last, last},
            p->channels_last ? 1 : depth * height * width};
}

inline Strides input_strides(const vg_conv *p) {
    return strides_of(p, p->in_channels, p->axis[0].size, p->axis[1].size, p->axis[2].size);
}

inline Strides output_strides(const vg_conv *p) {
    return strides_of(p, p->out_channels, p->axis[0].out, p->axis[1].out, p->axis[2].out);
}

// Whether an axis is left as it is, cell by cell.
inline bool idle(const vg_axis &a) { return a.window == 1 && a.stride == 1 && a.before == 0 && a.size == a.out; }

// Joins idle neighbouring axes to one, so that a 1x1x1 convolution is one long line of voxels: a matrix product.
inline vg_conv joined(vg_conv p) {
    for (vg_axis &a : p.axis)
        if (a.window == 1) a.dilation = 1;
    if (!takes(p.how, Path::joined, idle(p.axis[1]) && (idle(p.axis[0]) || idle(p.axis[2])))) return p;
    const auto join = [](vg_axis &outer, vg_axis &inner) {
        inner.size *= outer.size;
        inner.out = inner.size;
        outer.size = outer.out = 1;
    };
    if (idle(p.axis[0]) && idle(p.axis[1])) join(p.axis[0], p.axis[1]);
    if (idle(p.axis[1]) && idle(p.axis[2])) join(p.axis[1], p.axis[2]);
    if (idle(p.axis[0]) && idle(p.axis[1]) && idle(p.axis[2]) && p.channels_last && p.axis[0].size == 1) {
        vg_axis images = {p.batch, p.batch, 1, 1, 1, 0};
        join(images, p.axis[2]);
        p.batch = 1;
    }
    return p;
}

// Hands out pieces of the scratch memory; with a null base it only counts.
class Arena {
public:
    explicit Arena(void *base) : base_(static_cast<char *>(base)) {}
    template <class T>
    T *take(int64_t count) {
        T *here = base_ ? reinterpret_cast<T *>(base_ + used_) : nullptr;
        used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
        return here;
    }
    int64_t used() const { return used_; }

private:
    char *base_;
    int64_t used_ = 0;
};

// Keeps the compiler from loading a vector anew for each of its uses.
template <class V>
inline void keep([[maybe_unused]] V &v) {
#if defined(__x86_64__)
    asm("" : "+v"(v));
#endif
}

// Swaps the off-diagonal s x s squares of every 2s x 2s square, for s and all larger powers of two.
template <int s, class A, int... i>
inline void swap_squares(vec<A> *v, int_list<i...> each) {
    constexpr int n = lanes<A>;
    if constexpr (s < n) {
#pragma GCC unroll 16
        for (int k = 0; k < n; ++k) {
            if (k & s) continue;
            const vec<A> a = v[k], b = v[k + s];
            v[k] = __builtin_shufflevector(a, b, (i & s ? n + i - s : i)...);
            v[k + s] = __builtin_shufflevector(a, b, (i & s ? n + i : i + s)...);
        }
        swap_squares<s * 2, A>(v, each);
    }
}

// to[j][i] = from[i][j] for a square of one vector's width.
template <class S, class T>
inline void transpose(const S *from, int64_t from_row, T *to, int64_t to_row) {
    using A = sum_t<S>;
    vec<A> v[lanes<A>];
#pragma GCC unroll 16
    for (int i = 0; i < lanes<A>; ++i) v[i] = load(from + i * from_row);
    swap_squares<1, A>(v, int_range<lanes<A>>{});
#pragma GCC unroll 16
    for (int i = 0; i < lanes<A>; ++i) store(to + i * to_row, v[i]);
}

// Calls body with a value of the storage type that the problem names; `otherwise` if it names none.
template <class Result, class Body>
inline Result with_type(int32_t dtype, Result otherwise, Body &&body) {
    switch (dtype) {
        case VG_F16: return body(f16{});
        case VG_BF16: return body(bf16{});
        case VG_F32: return body(float{});
        case VG_F64: return body(double{});
        default: return otherwise;
    }
}

// Whether all of some numbers are finite: zero times any other is NaN.
template <class A>
inline bool all_finite(const A *numbers, int64_t count) {
    vec<A> sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * lanes<A> <= count; i += 4 * lanes<A>)
        for (int k = 0; k < 4; ++k) sums[k] += load(numbers + i + k * lanes<A>) * A(0);
    A total = 0;
    for (; i < count; ++i) total += numbers[i] * A(0);
    const vec<A> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int k = 0; k < lanes<A>; ++k) total += sum[k];
    return total == 0;
}

// What all threads of a call found: whether every number that decides was finite.
class Finite {
public:
    void saw(bool finite) {
        if (!finite) __atomic_store_n(&finite_, 0, __ATOMIC_RELAXED);
    }
    int32_t status() const { return finite_ ? VG_OK : VG_NOT_FINITE; }

private:
    int32_t finite_ = 1;
};

// One parallel region. Work too small to be worth waking a thread for runs on the caller; the result is the same.
template <class Body>
inline bool parallel(const vg_how &how, const vg_run *run, int64_t tasks, double work, Body body) {
    constexpr double worth_a_thread = 1e6;  // about 30 us of multiplications
    const int32_t threads = threads_of(how, work < worth_a_thread ? 1 : most(run->threads, 1), run->threads);
    return vg::parallel(tasks, threads, run->cancel, static_cast<Body &&>(body));
}

}  // namespace VG_NAMESPACE::conv
