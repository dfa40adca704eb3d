// SPDX-License-Identifier: Apache-2.0
// How the cells of a window become one number.
#pragma once

#include "pool_common.hpp"
#include "pool_vector.hpp"

namespace VG_NAMESPACE::pool {

// The joins. weighted: source rows are multiplied before they are added. divides: the sum is divided by the count.
template <class S>
struct Largest {
    using A = sum_t<S>;
    static constexpr bool weighted = false, divides = false;
    static constexpr A identity = -std::numeric_limits<A>::infinity();
    static vec<A> join(vec<A> best, vec<A> v) { return larger<A>(v, best); }
};
template <class S>
struct Mean {
    using A = sum_t<S>;
    static constexpr bool weighted = false, divides = true;
    static constexpr A identity = 0;
    static vec<A> join(vec<A> sum, vec<A> v) { return sum + v; }
};
template <class S>
struct Spread {
    using A = sum_t<S>;
    static constexpr bool weighted = true, divides = false;
    static constexpr A identity = 0;
    static vec<A> join(vec<A> sum, vec<A> v) { return sum + v; }
};

}  // namespace VG_NAMESPACE::pool
