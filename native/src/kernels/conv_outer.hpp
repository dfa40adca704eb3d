// SPDX-License-Identifier: Apache-2.0
// The register tiles of the filter gradient: sums, over a box of voxels, of outer products between input values
// (broadcast) and vectors of output-gradient channels.
#pragma once

#include "conv_tile.hpp"

namespace VG_NAMESPACE::conv {

// The rows of a tile are values anywhere in the slab (all the taps of a few channels), or adjacent input channels.
// Meanwhile, with every line of voxels, memory can be `asking` for what comes next; those that lie `in_memory` in long
// lines are asked for voxel by voxel.
enum class Rows { listed, adjacent, asking, in_memory };

// Memory that will be wanted next: a box of voxels, some lines of each. It is asked for a little at a time while there is
// something to multiply, as all at once would keep what is multiplied waiting.
class Ahead {
public:
    Ahead() = default;
    // `at` is the first voxel; distances in elements.
    template <class S>
    Ahead(const S *at, const int64_t (&count)[3], const int64_t (&step)[3], int64_t channels)
        : at_(reinterpret_cast<const char *>(at)), bytes_(channels * sizeof(S)) {
        for (int a = 0; a < 3; ++a) count_[a] = count[a], step_[a] = step[a] * sizeof(S);
        left_ = count[0] * count[1] * count[2] * pieces(bytes_, line);
    }
    int64_t lines() const { return left_; }
    // Sets how many lines to ask for at a time.
    void share(int64_t lines) { share_ = lines; }

    inline __attribute__((always_inline)) void ask() {
        for (int64_t n = least(share_, left_); n > 0; --n) {
            __builtin_prefetch(at_ + byte_, 0, 2);
            --left_;
            byte_ += line;
            if (byte_ >= bytes_) next();
        }
    }

private:
    static constexpr int64_t line = 64;
    inline __attribute__((always_inline)) void next() {
        byte_ = 0;
        for (int a = 2; a >= 0; --a) {
            at_ += step_[a];
            if (++done_[a] < count_[a]) return;
            at_ -= done_[a] * step_[a];
            done_[a] = 0;
        }
    }

    const char *at_ = nullptr;
    int64_t bytes_ = 0, byte_ = 0, left_ = 0, share_ = 0;
    int64_t count_[3] = {}, step_[3] = {}, done_[3] = {};
};

// A box of voxels, with the distances between them along each axis.
template <class A>
struct OuterInput {
    const A *x, *dy;
    int64_t count[3], x_step[3], dy_step[3];
    int64_t x_ahead, dy_ahead;  // how far on the next boxes lie
    const int64_t *rows;        // distances from x of listed rows
    Ahead *next;                // x and dy of the next slice
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
            if (kind == Rows::asking) in.next[0].ask(), in.next[1].ask();
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

// The rows of a tile. Each listed one has an address of its own; one that found no register must be loaded as well, and a
// single vector gives too little to do meanwhile.
template <Rows kind>
constexpr int most_outer_rows(int vectors) {
    constexpr int addresses = 10, adjacent = 16;
    const int most = kind != Rows::listed ? adjacent : vectors == 1 ? addresses : sum_registers;
    return most_voxels(vectors) < most ? most_voxels(vectors) : most;
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
