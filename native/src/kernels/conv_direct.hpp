// SPDX-License-Identifier: Apache-2.0
// Correlations: the engine behind conv3d and its input gradient, which are the same sum over different index maps.
//
// The output is cut into blocks. A task copies the input cells that a block needs into its scratch memory (a "slab":
// widened, zero-padded along the width, channels in blocks), then runs register tiles over it. The filter was packed
// before, once per call, into the order in which the tiles read it.
#pragma once

#include "conv_tile.hpp"

namespace VG_NAMESPACE::conv {

// How a correlation is cut up. It depends on the problem alone, never on the number of threads.
struct Plan {
    int64_t spacing, in_blocks, chunk;    // channel blocks of the input, and how many are summed in one pass
    int64_t vectors, part, parts;         // vectors of output channels: of a group, of a task; tasks per block
    int64_t rows, columns;                // voxels of a tile
    int64_t block[3], grid[3];            // output cells of a block; blocks
    int64_t tasks;
    int64_t slab, sums;                   // elements of scratch per thread
    int64_t w_tap, w_block, w_vector;     // distances in the packed filter, per vector of output channels
    int64_t packed;                       // its size
    double work;                          // multiplications, for the choice of threads
};

inline constexpr int64_t slab_bytes = 320 << 10, filter_bytes = 256 << 10, enough_tasks = 16;

inline int64_t slab_cells(const Correlation &c, const int64_t block[3]) {
    int64_t cells = 1;
    for (int a = 0; a < 3; ++a) {
        int64_t longest = 0;
        for (int64_t f = 0; f < c.phases[a]; ++f) {
            const Line l = c.line(a, f);
            longest = most(longest, slots_of(l, 0, least(block[a], l.count)).count());
        }
        cells *= longest;
    }
    return cells;
}

// Grows the block from one tile until the slab is as large as the cache likes or there are too few blocks to share.
inline void choose_block(const Correlation &c, Plan &p, const int64_t count[3], int64_t bytes_per_cell) {
    const double others = static_cast<double>(c.batch * c.groups * c.phases[0] * c.phases[1] * c.phases[2]);
    const double most_block = static_cast<double>(count[0]) * count[1] * count[2] * others / enough_tasks;
    int64_t *b = p.block;
    b[0] = 1, b[1] = p.rows, b[2] = p.columns;
    for (bool grown = true; grown;) {
        grown = false;
        for (int a = 2; a >= 0; --a) {
            const int64_t before = b[a];
            if (before >= count[a] || (a == 0 && b[1] < count[1] && b[0] >= b[1])) continue;
            b[a] = a == 1 ? before + p.rows : a == 2 ? before + p.columns : before + 1;
            const double voxels = static_cast<double>(b[0]) * b[1] * b[2];
            if (voxels <= most_block && slab_cells(c, b) * bytes_per_cell <= slab_bytes) {
                grown = true;
                break;
            }
            b[a] = before;
        }
    }
    for (int a = 0; a < 3; ++a) {
        p.grid[a] = pieces(count[a], b[a]);
        if (p.grid[a]) b[a] = pieces(count[a], p.grid[a]);
    }
    if (p.rows > 1) b[1] = pieces(b[1], p.rows) * p.rows, p.grid[1] = pieces(count[1], b[1]);
}

template <class A>
Plan plan_of(const Correlation &c) {
    Plan p = {};
    p.spacing = c.in == 1 ? 1 : c.in <= 4 ? 4 : 16;
    p.in_blocks = pieces(c.in, p.spacing);
    p.vectors = pieces(c.out, lanes<A>);
    const int64_t pair = least(p.vectors, most_vectors) * lanes<A>, size = sizeof(A);
    p.w_tap = (p.in_blocks == 1 ? c.in : p.spacing) * lanes<A>;
    p.w_block = p.w_tap * c.taps();
    p.w_vector = p.w_block * p.in_blocks;
    p.packed = p.w_vector * p.vectors * c.groups;
    p.chunk = clamp(filter_bytes / most(1, c.taps() * p.spacing * pair * size), 1, most(1, p.in_blocks));
    p.chunk = pieces(most(1, p.in_blocks), pieces(most(1, p.in_blocks), p.chunk));

    int64_t count[3];
    for (int a = 0; a < 3; ++a) count[a] = c.line(a, 0).count;
    const int64_t limit = most_voxels(static_cast<int>(least(most(1, p.vectors), most_vectors)));
    p.columns = most(1, pieces(count[2], pieces(most(1, count[2]), limit)));
    p.rows = p.spacing == 16 ? clamp(most_voxels(most_vectors) / p.columns, 1, least(most_rows, most(1, count[1]))) : 1;
    choose_block(c, p, count, p.chunk * p.spacing * size);

    const int64_t blocks = c.batch * c.groups * c.phases[0] * c.phases[1] * c.phases[2] * p.grid[0] * p.grid[1] * p.grid[2];
    const int64_t pairs = pieces(p.vectors, most_vectors);
    p.parts = blocks ? clamp(enough_tasks / blocks, 1, most(1, pairs)) : 1;
    p.part = pieces(pairs, p.parts) * most_vectors;
    p.parts = pieces(p.vectors, most(1, p.part));
    p.tasks = blocks * p.parts;
    p.slab = slab_cells(c, p.block) * p.chunk * p.spacing;
    // A single pass needs room for the tile at hand only.
    p.sums = p.chunk < p.in_blocks ? p.block[0] * p.block[1] * p.block[2] * p.part * lanes<A> : sum_registers * lanes<A>;
    p.work = static_cast<double>(c.batch) * c.groups * c.in * c.out * c.taps() * count[0] * count[1] * count[2];
    return p;
}

// The filter in the order of use: [group][vector pair][channel block][tap][channel][lane], zero beyond the last channel.
template <class S>
void pack_filter(const Correlation &c, const Plan &p, const S *w, sum_t<S> *packed, int64_t task) {
    using A = sum_t<S>;
    const int64_t pairs = pieces(p.vectors, most_vectors);
    const int64_t block = task % p.in_blocks, pair = task / p.in_blocks % pairs, group = task / p.in_blocks / pairs;
    const int64_t vectors = least(most_vectors, p.vectors - pair * most_vectors), width = vectors * lanes<A>;
    const int64_t first = pair * most_vectors * lanes<A>, real = least(width, c.out - first);
    const int64_t channels = least(p.spacing, c.in - block * p.spacing);
    const S *from = w + group * c.w_group + first * c.w_out + block * p.spacing * c.w_in;
    A *to = packed + (group * p.vectors + pair * most_vectors) * p.w_vector + block * p.w_block * vectors;
    for (int64_t tap = 0; tap < c.taps(); ++tap, from += c.w_tap, to += p.w_tap * vectors) {
        for (int64_t i = 0; i < channels; ++i) {
            A *line = to + i * width;
            for (int64_t o = 0; o < real; ++o) line[o] = widen(from[i * c.w_in + o * c.w_out]);
            for (int64_t o = real; o < width; ++o) line[o] = 0;
        }
    }
}

// Scratch of one thread.
template <class A>
struct Workspace {
    A *slab, *sums;
    int64_t *taps[3];

    Workspace(Arena &arena, const Correlation &c, const Plan &p)
        : slab(arena.take<A>(p.slab)), sums(arena.take<A>(p.sums)) {
        for (int a = 0; a < 3; ++a) taps[a] = arena.take<int64_t>(c.window[a]);
    }
};

template <class S>
class Correlator {
public:
    using A = sum_t<S>;
    Correlator(const Correlation &c, const Plan &p, const S *x, const A *w, S *y) : c(c), p(p), x(x), w(w), y(y) {}

    void operator()(int64_t task, Workspace<A> &space) const {
        Job b;
        if (!locate(task, b)) return;
        for (int a = 0; a < 3; ++a) b.tabulate(a, space.taps[a]);
        Slab<S> slab(b, c.from, space.slab);
        for (int64_t first = 0; first < most(1, p.in_blocks); first += p.chunk) {
            const int64_t blocks = least(p.chunk, p.in_blocks - first);
            const S *from = x + b.n * c.from.batch + (b.group * c.in + first * p.spacing) * c.from.channel;
            slab.fill(from, least(blocks * p.spacing, c.in - first * p.spacing), false, p.rows > 1);
            const int64_t end = least(b.vector + p.part, p.vectors);
            for (int64_t v = b.vector; v < end; v += most_vectors)
                multiply(b, first, blocks, v, least(most_vectors, end - v), space);
        }
    }

private:
    struct Job : Block {
        int64_t n, group, vector;
    };

    // Which part of the output a task makes; false if it is empty.
    bool locate(int64_t task, Job &b) const {
        b.vector = task % p.parts * p.part;
        task /= p.parts;
        int64_t at[3];
        for (int a = 2; a >= 0; --a) at[a] = task % p.grid[a], task /= p.grid[a];
        for (int a = 2; a >= 0; --a) {
            if (!b.set(a, c.line(a, task % c.phases[a]), at[a] * p.block[a], p.block[a])) return false;
            task /= c.phases[a];
        }
        b.group = task % c.groups;
        b.n = task / c.groups;
        b.lay_out(p.spacing);
        return true;
    }

    // All tiles of a block for one or two vectors of output channels and a chunk of input channels.
    void multiply(const Job &b, int64_t first, int64_t blocks, int64_t vector, int64_t vectors, Workspace<A> &space) const {
        TileInput<A> in;
        in.blocks = blocks;
        in.last = least(p.spacing, c.in - (first + blocks - 1) * p.spacing);
        in.x_block = b.slot[3];
        in.x_row = b.slot[1];
        in.w_block = p.w_block * vectors;
        in.w_tap[2] = p.w_tap * vectors;
        in.w_tap[1] = in.w_tap[2] * c.window[2];
        in.w_tap[0] = in.w_tap[1] * c.window[1];
        const A *filter = w + (b.group * p.vectors + vector) * p.w_vector + first * in.w_block;
        for (int a = 0; a < 3; ++a) {
            filter += b.line[a].first * in.w_tap[a];
            in.w_tap[a] *= b.line[a].hop;
            in.taps[a] = space.taps[a];
        }
        in.w = filter;
        const int64_t width = vectors * lanes<A>;
        const bool last = first + blocks >= p.in_blocks, one_pass = first == 0 && last;
        A *sums = space.sums;
        if (!one_pass) sums += (vector - b.vector) * lanes<A> * p.block[0] * p.block[1] * p.block[2];
        for (int64_t d = 0; d < b.count[0]; ++d) {
            in.valid[0] = b.line[0].valid(b.from[0] + d, b.from[0] + d + 1);
            for (int64_t h = 0; h < b.count[1]; h += p.rows) {
                const int64_t rows = least(p.rows, b.count[1] - h);
                in.valid[1] = b.line[1].valid(b.from[1] + h, b.from[1] + h + rows);
                for (int64_t q = 0; q < b.count[2]; q += p.columns) {
                    const int64_t columns = least(p.columns, b.count[2] - q);
                    in.valid[2] = b.line[2].valid(b.from[2] + q, b.from[2] + q + columns);
                    in.x = space.slab + d * b.slot[0] + h * b.slot[1] + q * b.slot[2];
                    S *to = y + b.n * c.to.batch + (b.group * c.out + vector * lanes<A>) * c.to.channel +
                            place(b, 0, d) + place(b, 1, h) + place(b, 2, q);
                    const Tile<A> run = tile_of<A>(p.spacing, vectors, rows, columns);
                    if (in_place(vector, vectors)) {
                        run(in, {reinterpret_cast<A *>(to), b.line[2].step * c.to.space[2], b.line[1].step * c.to.space[1], first > 0});
                    } else {
                        run(in, {sums, width, width * columns, first > 0});
                        if (last) emit(b, sums, rows, columns, vectors, least(width, c.out - vector * lanes<A>), to);
                        if (!one_pass) sums += rows * columns * width;
                    }
                }
            }
        }
    }

    int64_t place(const Job &b, int a, int64_t q) const {
        return ((b.from[a] + q) * b.line[a].step + b.line[a].phase) * c.to.space[a];
    }

    // Whether a tile's sums can be kept in the output itself.
    bool in_place(int64_t vector, int64_t vectors) const {
        return sizeof(S) == sizeof(A) && c.to.channel == 1 && (vector + vectors) * lanes<A> <= c.out;
    }

    // Rounds and writes a tile whose sums are [row][column][lane].
    void emit(const Job &b, const A *sums, int64_t rows, int64_t columns, int64_t vectors, int64_t channels, S *to) const {
        const int64_t width = vectors * lanes<A>, row = b.line[1].step * c.to.space[1], column = b.line[2].step * c.to.space[2];
        for (int64_t r = 0; r < rows; ++r, sums += columns * width, to += row) {
            if (c.to.channel == 1) {
                for (int64_t i = 0; i < columns; ++i) {
                    int64_t o = 0;
                    for (; o + lanes<A> <= channels; o += lanes<A>) store(to + i * column + o, load(sums + i * width + o));
                    for (; o < channels; ++o) narrow(sums[i * width + o], to + i * column + o);
                }
            } else {
                for (int64_t o = 0; o < channels; ++o)
                    for (int64_t i = 0; i < columns; ++i) narrow(sums[i * width + o], to + o * c.to.channel + i * column);
            }
        }
    }

    const Correlation &c;
    const Plan &p;
    const S *x;
    const A *w;
    S *y;
};

template <class S>
int64_t correlate_scratch(const Correlation &c, int32_t threads) {
    const Plan p = plan_of<sum_t<S>>(c);
    Arena arena(nullptr);
    arena.take<sum_t<S>>(p.packed);
    for (int32_t t = 0; t < threads; ++t) Workspace<sum_t<S>>(arena, c, p);
    return arena.used();
}

template <class S>
int32_t correlate(const Correlation &c, const S *x, const S *w, S *y, const vg_run *run) {
    using A = sum_t<S>;
    const Plan p = plan_of<A>(c);
    if (p.tasks == 0) return VG_OK;
    Arena arena(run->scratch);
    A *packed = arena.take<A>(p.packed);
    const int64_t pieces_of_filter = c.groups * pieces(p.vectors, most_vectors) * p.in_blocks;
    if (!parallel(run, pieces_of_filter, p.packed * 8.0, [&](int64_t task, int) { pack_filter(c, p, w, packed, task); }))
        return VG_CANCELLED;
    char *rest = static_cast<char *>(run->scratch) + arena.used();
    Arena one(nullptr);
    Workspace<A>(one, c, p);
    const Correlator<S> correlator(c, p, x, packed, y);
    const bool done = parallel(run, p.tasks, p.work, [&](int64_t task, int worker) {
        Arena mine(rest + worker * one.used());
        Workspace<A> space(mine, c, p);
        correlator(task, space);
    });
    return done ? VG_OK : VG_CANCELLED;
}

}  // namespace VG_NAMESPACE::conv
