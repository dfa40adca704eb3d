// SPDX-License-Identifier: Apache-2.0
// The register tile for few output channels: lanes run along the width, and each vector of input is used for up to
// four output channels.
#pragma once

#include "conv_tile.hpp"

namespace VG_NAMESPACE::conv {

inline constexpr int most_outs = 4;
// Enough sums to hide the latency of the additions, few enough that each strip's address has a register.
constexpr int most_strips(int outs) {
    return sum_registers / outs < 12 ? sum_registers / outs : VG_VECTOR_BYTES == 64 ? 12 : 8;
}

// A strip is one vector of voxels along the width; `strip` says where each starts. Otherwise as for a tile; a block of
// input channels is a single channel.
template <class A>
struct NarrowInput : TileInput<A> {
    int64_t strip[12];
};

// sums[strip][out][lane] (+)= sums.
template <class A>
using Narrow = void (*)(const NarrowInput<A> &, A *sums, bool add);

template <class A, int outs, int strips>
void narrow_tile(const NarrowInput<A> &in, A *sums, bool add) {
    vec<A> sum[strips][outs] = {};
    const A *x[strips];
    for (int k = 0; k < strips; ++k) x[k] = in.x + in.strip[k];
    for (int64_t channel = 0; channel < in.blocks; ++channel) {
        for (int64_t d = in.valid[0].from; d < in.valid[0].to; ++d) {
            for (int64_t h = in.valid[1].from; h < in.valid[1].to; ++h) {
                const int64_t line = channel * in.x_block + in.taps[0][d] + in.taps[1][h];
                const A *w = in.w + channel * in.w_block + d * in.w_tap[0] + h * in.w_tap[1];
                for (int64_t t = in.valid[2].from; t < in.valid[2].to; ++t) {
                    const int64_t at = line + in.taps[2][t];
                    vec<A> filter[outs];
#pragma GCC unroll 4
                    for (int o = 0; o < outs; ++o) filter[o] = splat(w[t * in.w_tap[2] + o]);
#pragma GCC unroll 12
                    for (int k = 0; k < strips; ++k) {
                        vec<A> value = load(x[k] + at);
                        keep(value);  // one load for all outs: they cross cache lines
#pragma GCC unroll 4
                        for (int o = 0; o < outs; ++o) sum[k][o] += value * filter[o];
                    }
                }
            }
        }
    }
#pragma GCC unroll 12
    for (int k = 0; k < strips; ++k) {
#pragma GCC unroll 4
        for (int o = 0; o < outs; ++o) {
            A *to = sums + (k * outs + o) * lanes<A>;
            store(to, add ? load(to) + sum[k][o] : sum[k][o]);
        }
    }
}

template <class A, int outs, int... i>
Narrow<A> narrow_of(int64_t strips, int_list<i...>) {
    static constexpr Narrow<A> table[] = {narrow_tile<A, outs, i + 1>...};
    return table[strips - 1];
}

template <class A>
Narrow<A> narrow_of(int64_t outs, int64_t strips) {
    switch (outs) {
        case 1: return narrow_of<A, 1>(strips, int_range<most_strips(1)>{});
        case 2: return narrow_of<A, 2>(strips, int_range<most_strips(2)>{});
        case 3: return narrow_of<A, 3>(strips, int_range<most_strips(3)>{});
        default: return narrow_of<A, 4>(strips, int_range<most_strips(4)>{});
    }
}

}  // namespace VG_NAMESPACE::conv
