// SPDX-License-Identifier: Apache-2.0
// How the cells of a window become one number.
#pragma once

#include "pool_common.hpp"
#include "pool_vector.hpp"

namespace VG_NAMESPACE::pool {

// The joins. weighted: source rows are multiplied before they are added. divides: the sum is divided by the count.
// rounds: what comes out is not one of the numbers that went in.
template <class S>
struct Largest {
    using A = sum_t<S>;
    static constexpr bool weighted = false, divides = false, rounds = false;
    static constexpr A identity = -std::numeric_limits<A>::infinity();
    static vec<A> join(vec<A> best, vec<A> v) { return larger<A>(v, best); }
};
template <class S>
struct Mean {
    using A = sum_t<S>;
    static constexpr bool weighted = false, divides = true, rounds = true;
    static constexpr A identity = 0;
    static vec<A> join(vec<A> sum, vec<A> v) { return sum + v; }
};
template <class S>
struct Spread {
    using A = sum_t<S>;
    static constexpr bool weighted = true, divides = false, rounds = true;
    static constexpr A identity = 0;
    static vec<A> join(vec<A> sum, vec<A> v) { return sum + v; }
};

// Backward, a window's gradient is divided by all its cells before it is added, as TensorFlow does: a sum of the whole
// might overflow. Along the width by the largest window; smaller ones are corrected afterwards.
template <class A>
class Shares {
public:
    explicit Shares(const vg_pool *p) : axis_(p->axis) {
        const vg_span &wide = axis_[2];
        for (int64_t o = 0; o < wide.out; ++o) width_ = std::max(width_, extent(wide, o));
        while (even_.lo < wide.out && extent(wide, even_.lo) != width_) ++even_.lo;
        even_.hi = even_.lo;
        while (even_.hi < wide.out && extent(wide, even_.hi) == width_) ++even_.hi;
    }
    Range even() const { return even_; }  // windows known to be of the largest size along the width
    A of_row(int64_t d, int64_t h) const {
        return A(1) / static_cast<A>(at_least_one(extent(axis_[0], d) * extent(axis_[1], h) * width_));
    }
    A correction(int64_t w) const {
        return static_cast<A>(width_) / static_cast<A>(at_least_one(extent(axis_[2], w)));
    }

private:
    const vg_span *axis_;
    int64_t width_ = 0;
    Range even_{0, 0};
};

}  // namespace VG_NAMESPACE::pool
