// SPDX-License-Identifier: Apache-2.0
// Correlations: the engine behind conv3d and its input gradient, which are the same sum over different index maps.
//
// The output is cut into blocks. A task copies the input cells that a block needs into its scratch memory (a "slab":
// widened, zero-padded along the width, channels in blocks), then runs register tiles over it. The filter was packed
// before, once per call, into the order in which the tiles read it.
#pragma once

#include "../machine.hpp"
#include "../table.hpp"
#include "conv_narrow.hpp"

namespace VG_NAMESPACE::conv {

// How a correlation is cut up. It depends on the problem alone, never on the number of threads.
struct Plan : Cut {
    bool narrow;                        // lanes along the width, not along the output channels
    bool direct;                        // x is read where it is, without a slab
    bool listed;                        // the products of a sum are listed: few input channels, or a single tap in place
    bool local;                         // each task packs its own part of the filter and makes it for all blocks
    int64_t spacing, in_blocks, chunk;  // channel blocks of the input, and how many are summed in one pass
    int64_t unit, vectors;              // output channels are cut into vectors of `unit`
    int64_t pair, sets;                 // the most vectors of a tile; the sets into which they are cut for tiles
    int64_t part, parts;                // sets of a task; tasks per block
    int64_t rows, columns;              // voxels of a tile
    int64_t tasks, jobs, phases;        // blocks of a task; phases of a block: those that share a slab
    int64_t slab, sums, filter;         // elements of scratch per thread
    int64_t w_tap, w_block, w_vector;   // distances in the packed filter, per vector of output channels
    int64_t packed;                     // its size
    double work;                        // multiplications, for the choice of threads

    // The first vector of a set, and how many it has: sets are as equal as can be, as tiles of few vectors wait for their
    // own sums.
    int64_t start(int64_t set) const { return set * vectors / sets; }
    int64_t size(int64_t set) const { return start(set + 1) - start(set); }
};

inline constexpr int64_t filter_bytes = 256 << 10, cell_bytes = 256;
inline constexpr int64_t most_terms = 2048;
inline constexpr int64_t large_filter_bytes = 4 << 20, few_voxels = 2048;

// The share of the lanes that do useful work, of vectors that must hold `count` numbers.
inline double filled(int64_t count, int64_t lanes) { return static_cast<double>(count) / (pieces(count, lanes) * lanes); }

// How well tiles along the width use them, counting what turning channels into lines costs.
template <class A>
double filled_by_width(const Correlation &c, int64_t width) {
    return c.out <= 3 * most_outs ? 0.8 * filled(width, lanes<A>) : 0;
}

// Whether more lanes do useful work along the width than along the output channels.
template <class A>
bool prefers_narrow(const Correlation &c, int64_t width) {
    return filled_by_width<A>(c, width) > filled(c.out, lanes<A>);
}

// The kernels for vectors of half the size, if they are to be preferred; else null. They lose nothing where the machine
// halves vectors anyway, and gain where they leave fewer lanes unused than a share of `filled`.
template <class A>
const vg::Kernels *with_half_vectors([[maybe_unused]] const vg_how &how, [[maybe_unused]] int64_t channels,
                                     [[maybe_unused]] double filled_now, [[maybe_unused]] bool worth) {
    if constexpr (VG_VECTOR_BYTES == 64) {
        const bool fuller = vg::halves_vectors() && filled(channels, lanes<A> / 2) > 1.15 * filled_now;
        if (takes(how, Path::half_vectors, true, worth && fuller)) return &vg_avx2::kernels;
    }
    return nullptr;
}

// The same for a correlation. What it sums must be worth more than bringing in the data.
template <class S, class A = sum_t<S>>
const vg::Kernels *with_half_vectors(const Correlation &c) {
    if (VG_VECTOR_BYTES != 64 || c.out == 0) return nullptr;
    const int64_t width = c.line(2, 0).count;
    if (width == 0) return nullptr;
    const double by_width = filled_by_width<A>(c, width), by_channels = filled(c.out, lanes<A>);
    return with_half_vectors<A>(c.how, c.out, by_width > by_channels ? by_width : by_channels,
                                c.in * c.taps() >= 16 * (c.transposed ? c.steps() : 1));
}

// Whether tiles can read x in place. A tile can leave out its first or its last column, not more, where they meet padding,
// and none with a single tap.
template <class S>
bool can_read_in_place(const Correlation &c) {
    if (sizeof(S) != sizeof(sum_t<S>) || c.from.channel != 1 || c.in < 1) return false;
    for (int64_t f = 0; f < c.phases[2]; ++f) {
        const Line l = c.line(2, f);
        if (l.taps == 0) continue;
        const int64_t spare = c.taps() == 1 ? 0 : 1;
        if (l.low_shift() + spare * l.pace < 0) return false;
        if ((l.count - 1 - spare) * l.pace + l.low_shift() + l.span() > l.size) return false;
        if ((l.count - 1) * l.pace > l.size) return false;  // a tap could miss both ends
    }
    return true;
}

// Whether they had better do so. A copy costs more than it gains where its values are used few times, or lie side by side in
// long runs of channels; distances of whole pages between voxels would make these evict each other, if they are more than a
// few.
template <class S>
bool prefers_in_place(const Correlation &c) {
    const bool strided = c.axis[2].stride > 1;
    const int64_t enough = c.taps() == 1 ? 1 : strided && !c.transposed ? 5 : strided ? 64 : 96;
    if (c.in < enough) return false;
    const int64_t voxel = (c.transposed ? 1 : c.axis[2].stride) * c.from.space[2];
    return c.line(2, 0).count <= 4 || voxel * static_cast<int64_t>(sizeof(S)) % 2048 != 0;
}

// Whether values of x are used so often that tiles along the width, which need them turned into lines one by one, come
// cheaper than tiles along the output channels with lanes of no use: those have to bring in less, with few channels, and
// nothing where they read in place.
template <class A>
bool is_worth_turning(const Correlation &c, bool in_place) {
    if (c.in > few_channels && !in_place) return true;
    const double turning = c.in > few_channels ? 6 : 3;  // in multiplications of vectors
    const int64_t windows = c.transposed ? 1 : c.steps();
    return c.taps() * (pieces(c.out, lanes<A>) - c.out / (0.8 * lanes<A>)) > turning * windows;
}

// The voxels of a tile of so many vectors: as many columns as the registers hold, then rows.
inline void shape_tile(const Correlation &c, int64_t height, int64_t width, int64_t pair, Plan &p) {
    const int64_t limit = most_voxels(static_cast<int>(pair));
    p.pair = pair;
    p.columns = cut_to(c.how, pieces(width, pieces(width, limit)));
    const bool several = !p.listed && !p.direct && limit / p.columns > 1;
    const int64_t rows = would_take(c.how, Path::rows, several) ? clamp(limit / p.columns, 1, most_rows) : 1;
    p.rows = cut_to(c.how, pieces(height, pieces(height, rows)));
}

// Short lines leave registers unused. A tile of one vector and twice the voxels or more then reads the filter less often,
// if a multiplication can take a value straight from memory, and if no taps in the padding come with the rows.
inline void prefer_voxels(const Correlation &c, int64_t height, int64_t width, Plan &p) {
    Plan one = p;
    shape_tile(c, height, width, 1, one);
    const bool strided = c.phases[0] * c.phases[1] * c.phases[2] > 1, idle = !p.direct && !p.listed && p.rows * p.columns <= 8;
    const bool worth = VG_VECTOR_BYTES == 64 && idle && one.rows * one.columns >= 2 * p.rows * p.columns &&
                       (one.rows == 1 || strided);
    if (takes(c.how, Path::one_vector, p.pair > 1, worth)) p = one;
}

// Two vectors of 32 bytes make too few sums to hide their latency where the width is not cut well. Three are preferred
// if their narrowest tile has more sums than those of two have on average; or if there are no more, as a single vector would
// leave registers unused.
inline void prefer_vectors(const Correlation &c, int64_t vectors, int64_t height, int64_t width, Plan &p) {
    if (VG_VECTOR_BYTES != 32) return;
    Plan three = p;
    shape_tile(c, height, width, 3, three);
    const int64_t narrowest = width / pieces(width, three.columns);
    const double average = static_cast<double>(width) / pieces(width, p.columns);
    const bool even = !p.listed && pieces(vectors, pieces(vectors, 3)) == 3;
    const bool worth = vectors == 3 || (even && 3 * three.rows * narrowest > 1.1 * 2 * p.rows * average);
    if (takes(c.how, Path::three, vectors >= 3 && p.pair == 2, worth)) p = three;
}

// Tiles of strips along the width.
template <class A>
void shape_strips(const Correlation &c, int64_t height, int64_t width, Plan &p) {
    const int64_t outs = c.out;
    p.unit = pieces(outs, pieces(outs, most_outs));
    p.pair = 1;
    p.spacing = 1;
    const int64_t limit = most_strips(static_cast<int>(p.unit)), strips = pieces(width, lanes<A>);
    const int64_t across = cut_to(c.how, pieces(strips, pieces(strips, limit)));
    p.columns = across * lanes<A>;
    p.rows = cut_to(c.how, pieces(height, pieces(height, limit / across)));
}

template <class S, class A = sum_t<S>>
void choose_tile(const Correlation &c, const int64_t count[3], Plan &p) {
    const int64_t height = most(1, count[1]), width = most(1, count[2]), vectors = pieces(c.out, lanes<A>);
    const bool one_tap = c.taps() == 1, open = can_read_in_place<S>(c), better = prefers_in_place<S>(c);
    const bool in_place = would_take(c.how, Path::direct, open, better);
    // For a single tap, turning pays for the fewest output channels only, and by whole squares.
    const bool turns = one_tap && in_place ? c.out <= 4 && c.in >= lanes<A> : is_worth_turning<A>(c, in_place);
    p.narrow = takes(c.how, Path::narrow, c.in > 0 && c.out > 0 && count[2] > 0, turns && prefers_narrow<A>(c, width));
    if (p.narrow) return shape_strips<A>(c, height, width, p);
    p.listed = takes(c.how, Path::listed, c.in > 0 && c.in * c.taps() <= most_terms &&
                                              (c.in <= few_channels || (one_tap && in_place)));
    p.direct = in_place && (one_tap || !p.listed);
    note(c.how, Path::direct, open && (one_tap || !p.listed), better, p.direct);
    p.dense = takes(c.how, Path::dense, p.listed && !p.direct,
                    c.axis[2].dilation == 1 && c.axis[2].stride <= c.window[2]);
    p.unit = lanes<A>;
    p.spacing = p.listed || (p.direct && !one_tap) ? c.in : 16;
    const int64_t limit = !p.listed ? most_vectors : p.direct ? most_vectors_in_place : most_vectors_listed;
    shape_tile(c, height, width, most(1, pieces(vectors, pieces(vectors, limit))), p);
    prefer_voxels(c, height, width, p);
    prefer_vectors(c, vectors, height, width, p);
    const bool several = !p.listed && !p.direct && height > 1 && most_voxels(static_cast<int>(p.pair)) / p.columns > 1;
    note(c.how, Path::rows, several, true, p.rows > 1);
}

template <class S>
Plan plan_of(const Correlation &c) {
    using A = sum_t<S>;
    Plan p = {};
    if (c.out == 0) return p;  // no tasks
    int64_t count[3];
    for (int a = 0; a < 3; ++a) count[a] = c.line(a, 0).count;
    choose_tile<S>(c, count, p);
    p.in_blocks = pieces(c.in, p.spacing);
    p.vectors = pieces(c.out, p.unit);
    p.sets = pieces(p.vectors, p.pair);
    p.w_tap = (p.in_blocks == 1 ? c.in : p.spacing) * p.unit;
    p.w_block = p.w_tap * c.taps();
    p.w_vector = p.w_block * p.in_blocks;
    const int64_t size = sizeof(A), blocks_in = most(1, p.in_blocks);
    p.chunk = p.narrow ? cell_bytes / size : filter_bytes / most(1, p.w_block * p.pair * size);
    const bool passes = takes(c.how, Path::passes, blocks_in > 1, p.chunk < blocks_in);
    if (is_forced(c.how, Path::passes)) p.chunk = cut_to(c.how, most(1, blocks_in / 2));
    p.chunk = passes ? pieces(blocks_in, pieces(blocks_in, clamp(p.chunk, 1, blocks_in))) : blocks_in;

    const int64_t images = c.batch * c.groups * c.slabs(0) * c.slabs(1) * c.slabs(2);
    p.phases = c.phases[0] * c.phases[1] * c.phases[2] / most(1, c.slabs(0) * c.slabs(1) * c.slabs(2));
    const double voxels = static_cast<double>(count[0]) * count[1] * count[2] * images;
    choose_block(c, {1, p.rows, p.columns}, voxels / enough_tasks, p.chunk * p.spacing * size, p);
    const int64_t blocks = images * p.grid[0] * p.grid[1] * p.grid[2];
    // A large filter that is used for few voxels is not worth a pass of its own.
    p.local = takes(c.how, Path::local, !p.narrow && blocks > 0,
                    p.sets * c.groups >= 4 && voxels * p.phases <= few_voxels &&
                        p.w_vector * p.vectors * c.groups * size >= large_filter_bytes);
    p.jobs = p.local ? blocks / c.groups : 1;
    // There are few tasks then, and two threads shall have as much to do.
    if (p.local && p.sets < p.vectors) p.sets += p.sets % 2;
    p.parts = p.local ? pieces(p.vectors, most_vectors) : blocks ? clamp(enough_tasks / blocks, 1, most(1, p.sets)) : 1;
    const bool parts = takes(c.how, Path::parts, p.sets > 1, p.parts > 1);
    p.parts = parts && is_forced(c.how, Path::parts) ? p.sets : parts ? p.parts : 1;
    p.part = most(1, pieces(p.sets, p.parts));
    p.parts = pieces(p.sets, p.part);
    p.tasks = blocks ? blocks / p.jobs * p.parts : 0;
    p.filter = p.local ? p.w_block * p.chunk * p.part * p.pair : 0;
    p.packed = p.local ? 0 : p.w_vector * p.vectors * c.groups;
    // The last strip reads past the end of the slab.
    p.slab = p.direct ? 0 : slab_cells(c, p.block, p.dense) * p.chunk * p.spacing + lanes<A>;
    // A single pass needs room for the tile at hand only; in any case, writing may read a square more.
    const int64_t block_sums = p.block[0] * p.block[1] * p.block[2] * p.part * p.pair * p.unit * p.phases * p.jobs;
    p.sums = (p.chunk < p.in_blocks ? block_sums : sum_registers * lanes<A>) + p.pair * lanes<A> * lanes<A>;
    note_runs(c, p, !p.direct);
    p.work = voxels * p.phases * c.in * (p.narrow ? c.out : p.vectors * p.unit) * c.taps();
    return p;
}

template <class S>
void pack_tap(const Correlation &c, const S *from, int64_t ins, int64_t outs, sum_t<S> *to, int64_t width);

// One channel block of one set of vectors of the filter in the order of use: [tap][channel][lane], zero beyond the last
// channel. Returns whether its values are finite.
template <class S>
bool pack_filter(const Correlation &c, const Plan &p, const S *w, int64_t group, int64_t set, int64_t block, sum_t<S> *to) {
    using A = sum_t<S>;
    const int64_t vector = p.start(set), vectors = p.size(set), width = vectors * p.unit;
    const int64_t real = least(width, c.out - vector * p.unit), channels = least(p.spacing, c.in - block * p.spacing);
    const S *from = w + group * c.w_group + vector * p.unit * c.w_out + block * p.spacing * c.w_in;
    const bool gaps = channels * p.unit < p.w_tap;  // between the taps, where nothing was packed
    const A *begin = to;
    bool finite = true;
    if (real < width) std::memset(to, 0, p.w_block * vectors * sizeof(A));
    for (int64_t tap = 0; tap < c.taps(); ++tap, from += c.w_tap, to += p.w_tap * vectors) {
        pack_tap(c, from, channels, real, to, width);
        if (gaps) finite &= all_finite(to, channels * width);
    }
    return gaps ? finite : all_finite(begin, to - begin);
}

// to[in][out] = one tap of the filter, by whole vectors or squares where there are any. Taps lie so far apart that the
// next one must be asked for.
template <class S>
void pack_tap(const Correlation &c, const S *from, int64_t ins, int64_t outs, sum_t<S> *to, int64_t width) {
    constexpr int n = lanes<sum_t<S>>;
    const int64_t whole_outs = outs / n * n, whole_ins = c.w_out == 1 ? ins : c.w_in == 1 ? ins / n * n : 0;
    for (int64_t o = 0; o < whole_outs; o += n) {
        if (c.w_out == 1)
            for (int64_t i = 0; i < ins; ++i) {
                __builtin_prefetch(from + i * c.w_in + o + c.w_tap);
                store(to + i * width + o, load(from + i * c.w_in + o));
            }
        else
            for (int64_t i = 0; i < whole_ins; i += n) {
                for (int64_t k = 0; k < n; ++k) __builtin_prefetch(from + i + (o + k) * c.w_out + c.w_tap);
                transpose(from + i + o * c.w_out, c.w_out, to + i * width + o, width);
            }
    }
    for (int64_t i = 0; i < ins; ++i)
        for (int64_t o = i < whole_ins ? whole_outs : 0; o < outs; ++o)
            to[i * width + o] = widen(from[i * c.w_in + o * c.w_out]);
}

// Scratch of one thread.
template <class A>
struct Workspace {
    A *slab, *sums, *filter;
    int64_t *taps[3];
    Term *terms;

    Workspace(Arena &arena, const Correlation &c, const Plan &p)
        : slab(arena.take<A>(p.slab)), sums(arena.take<A>(p.sums)), filter(arena.take<A>(p.filter)) {
        for (int a = 0; a < 3; ++a) taps[a] = arena.take<int64_t>(c.window[a]);
        terms = arena.take<Term>(p.listed ? c.in * c.taps() : 0);
    }
};

template <class S>
class Correlator {
public:
    using A = sum_t<S>;
    Correlator(const Correlation &c, const Plan &p, const S *x, const S *w, const A *packed, S *y, Finite &filter)
        : c(c), p(p), x(x), w(w), packed(packed), y(y), filter(filter) {
        constexpr int64_t size = sizeof(S);
        const int64_t input = c.batch * c.from.batch * size, result = c.batch * c.to.batch * size;
        const int64_t unit = (c.to.space[2] | c.out) * size;
        kept = takes(c.how, Path::kept, sizeof(S) == sizeof(A) && c.to.channel == 1 && !p.narrow);
        past_caches = kept && (c.taps() == 1 ? writes_past(c.how, y, result, unit, input + result)
                                             : goes_past(c.how, y, result, unit));
    }

    void operator()(int64_t task, Workspace<A> &space) const {
        Job b;
        b.sets.from = task % p.parts * p.part;
        b.sets.to = least(b.sets.from + p.part, p.sets);
        b.group = task / p.parts % c.groups;
        const int64_t where = task / p.parts / c.groups * p.jobs;
        for (int64_t first = 0; first < most(1, p.in_blocks); first += p.chunk) {
            const int64_t blocks = least(p.chunk, p.in_blocks - first);
            if (p.local) pack(b, first, blocks, space.filter);
            for (b.job = 0; b.job < p.jobs; ++b.job)
                if (locate(where + b.job, b)) add(b, first, blocks, space);
        }
    }

private:
    struct Job : Block {
        Line cover[3];
        Range sets;
        int64_t n, group, job, phase;
    };

    // Finds a block of the output; false if it is empty.
    bool locate(int64_t where, Job &b) const {
        int64_t at[3];
        for (int a = 2; a >= 0; --a) at[a] = where % p.grid[a], where /= p.grid[a];
        for (int a = 2; a >= 0; --a) {
            b.cover[a] = c.cover(a, where % c.slabs(a));
            if (!b.set(c.how, a, b.cover[a], at[a] * p.block[a], p.block[a], p.dense && a == 2)) return false;
            where /= c.slabs(a);
        }
        b.n = where;
        b.lay_out(p.spacing);
        return true;
    }

    void pack(const Job &b, int64_t first, int64_t blocks, A *to) const {
        for (int64_t set = b.sets.from; set < b.sets.to; ++set) {
            for (int64_t k = 0; k < blocks; ++k)
                filter.saw(pack_filter(c, p, w, b.group, set, first + k, to + k * p.w_block * p.size(set)));
            to += p.size(set) * p.chunk * p.w_block;
        }
    }

    // Adds what a chunk of the input channels contributes to a block.
    void add(Job &b, int64_t first, int64_t blocks, Workspace<A> &space) const {
        const S *from = x + b.n * c.from.batch + (b.group * c.in + first * p.spacing) * c.from.channel;
        const int64_t channels = least(blocks * p.spacing, c.in - first * p.spacing);
        if (!p.direct) Slab<S>(b, c.from, space.slab).fill(from, channels, false, p.rows > 1);
        for (int64_t phase = 0; phase < p.phases; ++phase) {
            if (!enter(phase, b, space)) continue;
            for (int64_t set = b.sets.from; set < b.sets.to; ++set) {
                Pass pass = pass_of(b, first, blocks, set, space);
                if (p.direct) read_in_place(b, from, channels, pass);
                if (p.narrow) multiply_narrow(b, pass);
                else multiply(b, pass);
            }
        }
    }

    // Turns to one of the phases that share the slab; false if the block has none of its cells.
    bool enter(int64_t phase, Job &b, Workspace<A> &space) const {
        b.phase = phase;
        for (int a = 2; a >= 0; --a) {
            if (!b.select(a, c.shares(a) ? c.line(a, phase % c.phases[a]) : b.cover[a])) return false;
            if (c.shares(a)) phase /= c.phases[a];
            if (p.direct) b.tabulate_in_memory(a, c.from.space[a], space.taps[a]);
            else b.tabulate(a, space.taps[a]);
        }
        return true;
    }

    // One or two vectors of output channels and a chunk of input channels, for all tiles of a block.
    struct Pass {
        NarrowInput<A> in;
        int64_t vector, vectors, width;
        bool first, last;
        A *sums;
        Term *terms;
        const A *x;        // of the block's first voxel
        int64_t voxel[3];  // distances in x between neighbouring voxels
        int64_t next;      // distance in y between tiles that are taken at once
    };

    Pass pass_of(const Job &b, int64_t first, int64_t blocks, int64_t set, Workspace<A> &space) const {
        Pass s = {};
        const int64_t vectors = p.size(set), before = p.start(set) - p.start(b.sets.from);  // of this task
        s.vector = p.start(set), s.vectors = vectors, s.width = vectors * p.unit;
        s.first = first == 0, s.last = first + blocks >= p.in_blocks;
        s.sums = space.sums;
        const int64_t voxels = p.block[0] * p.block[1] * p.block[2];
        if (!(s.first && s.last))
            s.sums += ((b.job * p.phases + b.phase) * p.part * p.pair + before) * p.unit * voxels;
        s.x = space.slab;
        for (int a = 0; a < 3; ++a) s.voxel[a] = b.slot[a];
        s.in.blocks = blocks;
        s.in.last = least(p.spacing, c.in - (first + blocks - 1) * p.spacing);
        if (p.dense) s.voxel[2] *= b.line[2].pace;
        s.in.x_block = b.slot[3];
        s.in.x_row = p.listed ? s.voxel[2] : b.slot[1];
        s.in.w_block = p.w_block * vectors;
        s.in.w_tap[2] = p.w_tap * vectors;
        s.in.w_tap[1] = s.in.w_tap[2] * c.window[2];
        s.in.w_tap[0] = s.in.w_tap[1] * c.window[1];
        s.in.w = p.local ? space.filter + before * p.chunk * p.w_block
                         : packed + (b.group * p.vectors + s.vector) * p.w_vector + first * s.in.w_block;
        for (int a = 0; a < 3; ++a) {
            s.in.w += b.line[a].first * s.in.w_tap[a];
            s.in.w_tap[a] *= b.line[a].hop;
            s.in.taps[a] = space.taps[a];
        }
        s.terms = space.terms;
        return s;
    }

    // Lists what the sums of a row are made of, if that differs from the row before; the width has no padding, or that of
    // the slab.
    void list(const Job &b, Range depths, Range heights, Pass &s) const {
        if (depths == s.in.valid[0] && heights == s.in.valid[1]) return;
        Term *to = s.terms;
        for (int64_t d = depths.from; d < depths.to; ++d)
            for (int64_t h = heights.from; h < heights.to; ++h)
                for (int64_t t = 0; t < b.line[2].taps; ++t) {
                    const int64_t x = s.in.taps[0][d] + s.in.taps[1][h] + s.in.taps[2][t];
                    const int64_t w = d * s.in.w_tap[0] + h * s.in.w_tap[1] + t * s.in.w_tap[2];
                    for (int64_t i = 0; i < c.in; ++i) *to++ = Term(x + i, w + i * s.width);
                }
        s.in.terms = s.terms, s.in.count = to - s.terms;
    }

    // Points a pass at x itself. The first pass over a block asks for what its next row will need.
    void read_in_place(const Job &b, const S *from, int64_t channels, Pass &s) const {
        s.x = reinterpret_cast<const A *>(from);
        for (int a = 0; a < 3; ++a) {
            s.voxel[a] = b.line[a].pace * c.from.space[a];
            s.x += b.start_in_memory(a, c.from.space[a]);
        }
        s.in.x_row = s.voxel[2];
        if (s.vector == p.start(b.sets.from) && !c.transposed) s.in.ahead = s.voxel[1];
        s.in.fresh[0] = b.line[1].pace, s.in.fresh[1] = b.line[2].pace;
        s.in.blocks = 1, s.in.last = channels;
    }

    // The taps along the height that meet data in `rows` rows from h on.
    static Range height_taps(const Job &b, int64_t h, int64_t rows) {
        return b.line[1].valid(b.from[1] + h, b.from[1] + h + rows);
    }
    // How many rows of tiles from h on meet the same ones.
    int64_t rows_alike(const Job &b, int64_t h, Range heights) const {
        int64_t alike = 1;
        while (h + p.rows * (alike + 1) <= b.count[1] && height_taps(b, h + p.rows * alike, p.rows) == heights) ++alike;
        return alike;
    }

    // Calls body(to, rows, columns) for every tile of a block, with the pass's input set to it. `several` says that it
    // takes all tiles with the same taps at once: those of a row between the padding, or, where one is a row, those of
    // rows.
    template <class Body>
    void each_tile(const Job &b, Pass &s, bool several, Body &&body) const {
        // Tiles as equal as can be: a narrow last one would wait for its own additions.
        const int64_t width = b.count[2], tiles = pieces(width, p.columns);
        const int64_t small = p.narrow ? p.columns : width / tiles, large = p.narrow ? 0 : width % tiles;
        const Range inside = !several ? Range{0, 0} : p.listed ? Range{0, b.line[2].count} : b.line[2].inside();
        for (int64_t d = 0; d < b.count[0]; ++d) {
            const Range depths = b.line[0].valid(b.from[0] + d, b.from[0] + d + 1);
            for (int64_t h = 0, alike; h < b.count[1]; h += p.rows * alike) {
                const int64_t rows = least(p.rows, b.count[1] - h);
                const Range heights = height_taps(b, h, rows);
                alike = several && tiles == 1 ? rows_alike(b, h, heights) : 1;
                if (p.listed) list(b, depths, heights, s);
                s.in.valid[0] = depths, s.in.valid[1] = heights;
                for (int64_t q = 0, columns; q < width; q += columns * s.in.tiles) {
                    const bool wide = q < large * (small + 1);
                    columns = wide ? small + 1 : least(small, width - q);
                    const int64_t at = b.from[2] + q, end = at + columns;
                    const int64_t left = (wide ? large * (small + 1) : width) - q;
                    s.in.tiles = tiles > 1 && inside.holds(at) ? most(1, least(left, inside.to - at) / columns) : 1;
                    s.in.x_next = columns * s.voxel[2];
                    s.next = columns * b.line[2].step * c.to.space[2];
                    s.in.valid[2] = s.in.head = s.in.tail = {0, 1};
                    if (!p.listed) {
                        s.in.valid[2] = b.line[2].valid(at, end);
                        s.in.head = b.line[2].valid(at, at + 1);
                        s.in.tail = b.line[2].valid(end - 1, end);
                    }
                    s.in.x = s.x + d * s.voxel[0] + h * s.voxel[1] + q * s.voxel[2];
                    if (alike > 1) {
                        s.in.tiles = alike, s.in.x_next = p.rows * s.voxel[1];
                        s.next = place(b, 1, p.rows) - place(b, 1, 0);
                    }
                    body(y + b.n * c.to.batch + (b.group * c.out + s.vector * p.unit) * c.to.channel + place(b, 0, d) +
                             place(b, 1, h) + place(b, 2, q),
                         rows, columns);
                }
            }
        }
    }

    void multiply(const Job &b, Pass &s) const {
        const int64_t row = b.line[1].step * c.to.space[1], column = b.line[2].step * c.to.space[2];
        const bool single = s.first && s.last, keep = in_place(s.vector, s.vectors, single);
        const int64_t beyond = (s.vector + s.vectors) * p.unit - c.out;
        const int part = beyond > 0 ? static_cast<int>(p.unit - beyond) : 0;
        each_tile(b, s, keep, [&](S *to, int64_t rows, int64_t columns) {
            const Tile<A> run = p.listed ? listed_of<A>(s.vectors, columns)
                                         : tile_of<A>(p.direct ? 0 : p.spacing, s.vectors, rows, columns);
            const bool past = single && past_caches;
            if (keep) return run(s.in, {reinterpret_cast<A *>(to), column, row, s.next, !s.first, past, part});
            run(s.in, {s.sums, s.width, s.width * columns, 0, !s.first, false, 0});
            if (s.last) emit(b, s.sums, rows, columns, s.width, least(s.width, c.out - s.vector * p.unit), to);
            if (!(s.first && s.last)) s.sums += rows * columns * s.width;
        });
    }

    void multiply_narrow(const Job &b, Pass &s) const {
        constexpr int n = lanes<A>;
        const int64_t row = b.line[1].step * c.to.space[1], column = b.line[2].step * c.to.space[2];
        const int64_t outs = least(p.unit, c.out - s.vector * p.unit);
        each_tile(b, s, false, [&](S *to, int64_t rows, int64_t columns) {
            const int64_t across = pieces(columns, n), strips = rows * across;
            for (int64_t k = 0; k < strips; ++k) s.in.strip[k] = k / across * b.slot[1] + k % across * n;
            narrow_of<A>(p.unit, strips)(s.in, s.sums, !s.first);
            for (int64_t k = 0; s.last && k < strips; ++k) {
                for (int64_t o = 0; o < outs; ++o)
                    emit_strip(s.sums + (k * p.unit + o) * n, least(n, columns - k % across * n), column,
                               to + k / across * row + k % across * n * column + o * c.to.channel);
            }
            if (!(s.first && s.last)) s.sums += strips * p.unit * n;
        });
    }

    static void emit_strip(const A *sums, int64_t voxels, int64_t column, S *to) {
        if (column == 1 && voxels == lanes<A>) return store(to, load(sums));
        if (column == 1) return store_part(to, load(sums), static_cast<int>(voxels));
        for (int64_t i = 0; i < voxels; ++i) narrow(sums[i], to + i * column);
    }

    int64_t place(const Job &b, int a, int64_t q) const {
        return ((b.from[a] + q) * b.line[a].step + b.line[a].phase) * c.to.space[a];
    }

    // Whether a tile's sums can be kept in the output itself; a part of a vector, if nothing is added to it later.
    bool in_place(int64_t vector, int64_t vectors, bool single) const {
        return kept && (single || (vector + vectors) * p.unit <= c.out);
    }

    // Rounds and writes a tile whose sums are [row][column][lane].
    void emit(const Job &b, const A *sums, int64_t rows, int64_t columns, int64_t width, int64_t channels, S *to) const {
        const int64_t row = b.line[1].step * c.to.space[1], column = b.line[2].step * c.to.space[2];
        for (int64_t r = 0; r < rows; ++r, sums += columns * width, to += row) {
            if (c.to.channel == 1) {
                for (int64_t i = 0; i < columns; ++i) {
                    int64_t o = 0;
                    for (; o + lanes<A> <= channels; o += lanes<A>) store(to + i * column + o, load(sums + i * width + o));
                    for (; o < channels; ++o) narrow(sums[i * width + o], to + i * column + o);
                }
            } else {
                emit_planes(sums, columns, width, channels, column, to);
            }
        }
    }

    // Turns [column][lane] into one line per channel. The squares may reach past the last column, into sums of no use.
    void emit_planes(const A *sums, int64_t columns, int64_t width, int64_t channels, int64_t column, S *to) const {
        constexpr int n = lanes<A>;
        A square[n * n];
        for (int64_t i = 0; i < columns; i += n) {
            for (int64_t o = 0; o < channels; o += n) {
                transpose(sums + i * width + o, width, square, n);
                for (int64_t k = 0; k < least(n, channels - o); ++k)
                    emit_strip(square + k * n, least(n, columns - i), column, to + (o + k) * c.to.channel + i * column);
            }
        }
    }

    const Correlation &c;
    const Plan &p;
    const S *x, *w;
    const A *packed;
    S *y;
    Finite &filter;
    bool kept;         // sums are made in the output, where they can be
    bool past_caches;  // write around them
};

template <class S>
int64_t correlate_scratch(const Correlation &c, int32_t threads) {
    const Plan p = plan_of<S>(c);
    Arena arena(nullptr);
    arena.take<sum_t<S>>(p.packed);
    for (int32_t t = 0; t < threads; ++t) Workspace<sum_t<S>>(arena, c, p);
    return arena.used();
}

template <class S>
int32_t correlate(const Correlation &c, const S *x, const S *w, S *y, const vg_run *run) {
    using A = sum_t<S>;
    const Plan p = plan_of<S>(c);
    if (p.tasks == 0) return VG_OK;
    Arena arena(run->scratch);
    A *packed = arena.take<A>(p.packed);
    const int64_t parts = p.local ? 0 : c.groups * p.sets * p.in_blocks;
    Finite filter;
    const auto pack = [&](int64_t task, int) {
        const int64_t block = task % p.in_blocks, set = task / p.in_blocks % p.sets, group = task / p.in_blocks / p.sets;
        A *to = packed + (group * p.vectors + p.start(set)) * p.w_vector + block * p.w_block * p.size(set);
        filter.saw(pack_filter(c, p, w, group, set, block, to));
    };
    const bool all_packed = parallel(c.how, run, parts, p.packed * 8.0, pack);  // else nothing follows
    char *rest = static_cast<char *>(run->scratch) + arena.used();
    Arena one(nullptr);
    Workspace<A>(one, c, p);
    const Correlator<S> correlator(c, p, x, w, packed, y, filter);
    const bool done = parallel(c.how, run, p.tasks, p.work, [&](int64_t task, int worker) {
        Arena mine(rest + worker * one.used());
        Workspace<A> space(mine, c, p);
        correlator(task, space);
        settle();
    });
    return all_packed && done ? filter.status() : VG_CANCELLED;
}

}  // namespace VG_NAMESPACE::conv
