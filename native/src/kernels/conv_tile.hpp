// SPDX-License-Identifier: Apache-2.0
// The register tiles of the correlations: a few output voxels by one to four vectors of output channels, summed over
// all taps and a run of input channels without leaving the registers.
#pragma once

#include "conv_slab.hpp"

namespace VG_NAMESPACE::conv {

// Input channels lie in blocks of 16 ("spacing"), so that the distance between neighbouring voxels is a constant of the
// code: every broadcast is then one instruction with an immediate offset. Spacing 0 means that x is read in place.

// Registers for sums: all but those for the filter vectors and a broadcast.
inline constexpr int sum_registers = VG_VECTOR_BYTES == 64 ? 28 : 12;
// Vectors of a tile: the more, the less often a value is read. Of 32 bytes two, as what goes past the caches must fill
// lines.
inline constexpr int most_vectors = 2;
inline constexpr int most_vectors_listed = VG_VECTOR_BYTES == 64 ? 3 : 2;
inline constexpr int most_vectors_in_place = VG_VECTOR_BYTES == 64 ? 4 : 2;
inline constexpr int most_rows = 4;
constexpr int most_voxels(int vectors) { return sum_registers / vectors; }

// A product of a sum: how far its value lies from the voxel, and its filter from that of the first tap and channel. They
// are read with one load, as there is little else to do.
class Term {
public:
    Term(int64_t x, int64_t w) : both_(w * (int64_t{1} << 32) + x) {}
    int64_t x() const { return both_ & 0xffffffff; }
    int64_t w() const { return both_ >> 32; }

private:
    int64_t both_;
};

// What a tile reads. `taps` says, per axis, how far the data of tap j lies from the tile's first voxel.
template <class A>
struct TileInput {
    const A *x;                // first voxel of the tile, first channel
    const A *w;                // filter of these output channels, first tap, first channel
    const int64_t *taps[3];    // distances in x, per axis
    int64_t w_tap[3];          // distances in w, per axis
    Range valid[3];            // the taps that meet any data
    Range head, tail;          // those along the width that meet data at the first and at the last column
    const Term *terms;         // of a listed sum
    int64_t count;             // their number
    int64_t blocks;            // blocks of input channels
    int64_t x_block, w_block;  // distances between them
    int64_t last;              // channels of the last block
    int64_t x_row;             // distance between the rows of a tile of several rows; without spacing, between voxels
    int64_t tiles, x_next;     // how many tiles with the same taps, and the distance between them
    int64_t ahead, fresh[2];   // how far on the next row of tiles reads, and how many of its last rows and first columns
                               // this one does not: memory is asked for them while this one is made

    int64_t ahead_at(int64_t h, int64_t t) const { return h + fresh[0] >= valid[1].to && t < fresh[1] ? ahead : 0; }
};

// Where the sums go: channels are contiguous.
template <class A>
struct TileOutput {
    A *y;
    int64_t column, row, next;
    bool add;   // to what is there
    bool past;  // the caches
    int part;   // channels of the last vector, or 0 for all; then nothing is added
};

template <class A>
using Tile = void (*)(const TileInput<A> &, const TileOutput<A> &);

// sum[voxel] += x[voxel][c] * w[c] over the channels, for the columns begin..end-1 of each row. Without a spacing, voxels
// are x_row apart; a pointer for every third then lets the address of each be a base, an index and a scale, and what lies
// `ahead` is asked for.
template <class A, int spacing, int vectors, int rows, int columns, int begin, int end>
inline __attribute__((always_inline)) void add_tap(vec<A> (&sum)[rows * columns][vectors], const A *x, int64_t x_row,
                                                   const A *w, int64_t channels, int64_t ahead) {
    constexpr int groups = spacing ? 1 : (columns + 2) / 3;
    const A *base[groups];
    for (int g = 0; g < groups; ++g) base[g] = x + g * 3 * x_row;
    for (int64_t c = 0; c < channels; ++c, w += vectors * lanes<A>) {
        vec<A> filter[vectors];
        if (spacing == 0) __builtin_prefetch(x + (c & 15) * x_row + (c & -16) + ahead, 0, 2);
#pragma GCC unroll 32
        for (int v = 0; v < vectors; ++v) {
            filter[v] = load(w + v * lanes<A>);
            if (spacing == 0) keep(filter[v]);
        }
#pragma GCC unroll 32
        for (int i = 0; i < rows * columns; ++i) {
            if (i % columns < begin || i % columns >= end) continue;
            const vec<A> value = splat(spacing ? x[i / columns * x_row + i % columns * spacing + c]
                                               : base[spacing ? 0 : i / 3][i % 3 * x_row + c]);
#pragma GCC unroll 32
            for (int v = 0; v < vectors; ++v) sum[i][v] += value * filter[v];
        }
    }
}

// Writes sums of which the last vectors are not whole: the same code for tiles of all shapes.
template <class A>
__attribute__((noinline)) void put_part(const vec<A> *sum, int vectors, int rows, int columns, const TileOutput<A> &out,
                                        A *y) {
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < columns; ++i, sum += vectors) {
            A *to = y + r * out.row + i * out.column;
            for (int v = 0; v < vectors - 1; ++v) {
                if (out.past) store_past(to + v * lanes<A>, sum[v]);
                else store(to + v * lanes<A>, sum[v]);
            }
            store_part(to + (vectors - 1) * lanes<A>, sum[vectors - 1], out.part);
        }
}

template <class A, int vectors, int rows, int columns>
inline __attribute__((always_inline)) void put(const vec<A> (&sum)[rows * columns][vectors], const TileOutput<A> &out,
                                               A *y) {
    if (out.part) {
        vec<A> copy[rows * columns][vectors];  // the sums themselves stay in registers
#pragma GCC unroll 32
        for (int i = 0; i < rows * columns; ++i) {
#pragma GCC unroll 32
            for (int v = 0; v < vectors; ++v) copy[i][v] = sum[i][v];
        }
        return put_part<A>(copy[0], vectors, rows, columns, out, y);
    }
    const auto each = [&](auto write) __attribute__((always_inline)) {
#pragma GCC unroll 32
        for (int i = 0; i < rows * columns; ++i) {
#pragma GCC unroll 32
            for (int v = 0; v < vectors; ++v)
                write(y + i / columns * out.row + i % columns * out.column + v * lanes<A>, sum[i][v]);
        }
    };
    if (out.past) return each([](A *to, vec<A> v) { store_past(to, v); });
    if (out.add) return each([](A *to, vec<A> v) { store(to, load(to) + v); });
    each([](A *to, vec<A> v) { store(to, v); });
}

template <class A, int spacing, int vectors, int rows, int columns>
inline __attribute__((always_inline)) void one_tile(const TileInput<A> &in, const TileOutput<A> &out, const A *first,
                                                    A *y) {
    // In tiles of few columns, a column in the padding is worth code of its own; elsewhere it adds the zeros of the slab.
    constexpr int edge = (spacing == 16 && columns > 2 && columns <= 16) || (spacing == 0 && columns > 1) ? 1 : 0;
    vec<A> sum[rows * columns][vectors] = {};
    for (int64_t block = 0; block < in.blocks; ++block) {
        const int64_t channels = block + 1 < in.blocks ? spacing : in.last;
        for (int64_t d = in.valid[0].from; d < in.valid[0].to; ++d) {
            for (int64_t h = in.valid[1].from; h < in.valid[1].to; ++h) {
                const A *line = first + block * in.x_block + in.taps[0][d] + in.taps[1][h];
                const A *tap = in.w + block * in.w_block + d * in.w_tap[0] + h * in.w_tap[1];
                for (int64_t t = in.valid[2].from; t < in.valid[2].to; ++t) {
                    const A *x = line + in.taps[2][t], *w = tap + t * in.w_tap[2];
                    if (edge && !in.head.holds(t))
                        add_tap<A, spacing, vectors, rows, columns, edge, columns>(sum, x, in.x_row, w, channels, 0);
                    else if (edge && !in.tail.holds(t))
                        add_tap<A, spacing, vectors, rows, columns, 0, columns - edge>(sum, x, in.x_row, w, channels, 0);
                    else
                        add_tap<A, spacing, vectors, rows, columns, 0, columns>(sum, x, in.x_row,
                                                                                w, channels, in.ahead_at(h, t));
                }
            }
        }
    }
    put<A, vectors, rows, columns>(sum, out, y);
}

template <class A, int spacing, int vectors, int rows, int columns>
void tile(const TileInput<A> &in, const TileOutput<A> &out) {
    const A *x = in.x;
    A *y = out.y;
    for (int64_t left = in.tiles; left > 0; --left, x += in.x_next, y += out.next)
        one_tile<A, spacing, vectors, rows, columns>(in, out, x, y);
}

// The tiles of all shapes, by [columns - 1].
template <class A, int spacing, int vectors, int rows>
struct Tiles {
    static constexpr int count = most_voxels(vectors) / rows;
    template <int... i>
    static Tile<A> pick(int64_t columns, int_list<i...>) {
        static constexpr Tile<A> table[] = {tile<A, spacing, vectors, rows, i + 1>...};
        return table[columns - 1];
    }
    static Tile<A> pick(int64_t columns) { return pick(columns, int_range<count>{}); }
};

template <class A, int spacing, int vectors>
Tile<A> tile_of_rows(int64_t rows, int64_t columns) {
    if constexpr (spacing == 16) {
        if (rows == 2) return Tiles<A, spacing, vectors, 2>::pick(columns);
        if (rows == 3) return Tiles<A, spacing, vectors, 3>::pick(columns);
        if (rows == 4) return Tiles<A, spacing, vectors, 4>::pick(columns);
    }
    return Tiles<A, spacing, vectors, 1>::pick(columns);
}

// The sum over listed terms: with few channels, loops over taps would cost as much as what they add up. Voxels are x_row
// apart; a pointer for every third lets the address of each be a base, an index and a scale.
template <class A, int vectors, int columns>
void listed_tile(const TileInput<A> &in, const TileOutput<A> &out) {
    const A *first = in.x;
    A *y = out.y;
    for (int64_t left = in.tiles; left > 0; --left, first += in.x_next, y += out.next) {
        vec<A> sum[columns][vectors] = {};
        for (const Term *at = in.terms, *end = at + in.count; at != end; ++at) {
            const Term term = *at;
            const A *x = first + term.x(), *w = in.w + term.w();
            vec<A> filter[vectors];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) {
                filter[v] = load(w + v * lanes<A>);
                keep(filter[v]);
            }
#pragma GCC unroll 32
            for (int i = 0; i < columns; ++i) {
                const vec<A> value = splat(x[i % 3 * in.x_row]);
                if (i % 3 == 2) x += 3 * in.x_row;
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v) sum[i][v] += value * filter[v];
            }
        }
        put<A, vectors, 1, columns>(sum, out, y);
    }
}

template <class A, int vectors, int... i>
Tile<A> listed_of(int64_t columns, int_list<i...>) {
    static constexpr Tile<A> table[] = {listed_tile<A, vectors, i + 1>...};
    return table[columns - 1];
}

template <class A>
Tile<A> listed_of(int64_t vectors, int64_t columns) {
    if (vectors == 1) return listed_of<A, 1>(columns, int_range<most_voxels(1)>{});
    if (vectors == 2) return listed_of<A, 2>(columns, int_range<most_voxels(2)>{});
    if (vectors == 3) return listed_of<A, 3>(columns, int_range<most_voxels(3)>{});
    constexpr int four = VG_VECTOR_BYTES == 64 ? 4 : 3;
    return listed_of<A, four>(columns, int_range<most_voxels(four)>{});
}

template <class A>
Tile<A> tile_of(int64_t spacing, int64_t vectors, int64_t rows, int64_t columns) {
    switch (spacing * 10 + vectors) {
        case 1: return tile_of_rows<A, 0, 1>(rows, columns);
        case 2: return tile_of_rows<A, 0, 2>(rows, columns);
        case 3: return tile_of_rows<A, 0, 3>(rows, columns);
        case 161: return tile_of_rows<A, 16, 1>(rows, columns);
        case 162: return tile_of_rows<A, 16, 2>(rows, columns);
        default: return tile_of_rows<A, 16, VG_VECTOR_BYTES == 32 ? 3 : 2>(rows, columns);
    }
}

}  // namespace VG_NAMESPACE::conv
