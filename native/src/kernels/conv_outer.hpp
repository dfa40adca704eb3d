// SPDX-License-Identifier: Apache-2.0
// The register tiles of the filter gradient: sums, over a box of voxels, of outer products between input values
// (broadcast) and vectors of output-gradient channels.
#pragma once

#include "conv_tile.hpp"

namespace VG_NAMESPACE::conv {

// The rows of a tile are values anywhere in the slab (all the taps of a few channels), or adjacent input channels; those
// that lie `in_memory`, not in a slab, are asked for ahead of their use.
enum class Rows { listed, adjacent, in_memory };

// A box of voxels, with the distances between them along each axis.
template <class A>
struct OuterInput {
    const A *x, *dy;
    int64_t count[3], x_step[3], dy_step[3];
    int64_t x_ahead, dy_ahead;  // how far on the next boxes lie
    const int64_t *rows;        // distances from x of listed rows
};

// sums[row][lane] += the sum of products.
template <class A>
using Outer = void (*)(const OuterInput<A> &, A *sums);

template <class A, Rows kind, int vectors, int rows>
void outer(const OuterInput<A> &in, A *sums) {
    constexpr int width = vectors * lanes<A>;
    vec<A> sum[rows][vectors] = {};
    const A *row[rows];
    for (int r = 0; r < rows; ++r) row[r] = kind == Rows::listed ? in.x + in.rows[r] : nullptr;
    for (int64_t d = 0; d < in.count[0]; ++d) {
        for (int64_t h = 0; h < in.count[1]; ++h) {
            const A *dy = in.dy + d * in.dy_step[0] + h * in.dy_step[1];
            int64_t i = d * in.x_step[0] + h * in.x_step[1];
            for (int64_t w = 0; w < in.count[2]; ++w, i += in.x_step[2], dy += in.dy_step[2]) {
                vec<A> gradient[vectors];
                if (kind == Rows::in_memory) __builtin_prefetch(in.x + i + in.x_ahead, 0, 2);
#pragma GCC unroll 32
                for (int v = 0; v < vectors; ++v) {
                    if (kind == Rows::in_memory) __builtin_prefetch(dy + v * lanes<A> + in.dy_ahead, 0, 2);
                    gradient[v] = load(dy + v * lanes<A>);
                }
#pragma GCC unroll 32
                for (int r = 0; r < rows; ++r) {
                    const vec<A> value = splat(kind == Rows::listed ? row[r][i] : in.x[i + r]);
#pragma GCC unroll 32
                    for (int v = 0; v < vectors; ++v) sum[r][v] += value * gradient[v];
                }
            }
        }
    }
#pragma GCC unroll 32
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 32
        for (int v = 0; v < vectors; ++v) {
            A *to = sums + r * width + v * lanes<A>;
            store(to, load(to) + sum[r][v]);
        }
    }
}

template <Rows kind>
constexpr int most_outer_rows(int vectors) {
    return kind == Rows::listed || most_voxels(vectors) < 16 ? most_voxels(vectors) : 16;
}

template <class A, Rows kind, int vectors, int... i>
Outer<A> outer_of(int64_t rows, int_list<i...>) {
    static constexpr Outer<A> table[] = {outer<A, kind, vectors, i + 1>...};
    return table[rows - 1];
}

template <class A, Rows kind>
Outer<A> outer_of(int64_t vectors, int64_t rows) {
    if (vectors == 1) return outer_of<A, kind, 1>(rows, int_range<most_outer_rows<kind>(1)>{});
    if (vectors == 2) return outer_of<A, kind, 2>(rows, int_range<most_outer_rows<kind>(2)>{});
    constexpr int three = VG_VECTOR_BYTES == 32 ? 3 : 2;
    return outer_of<A, kind, three>(rows, int_range<most_outer_rows<kind>(three)>{});
}

}  // namespace VG_NAMESPACE::conv
