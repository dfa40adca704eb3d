// SPDX-License-Identifier: Apache-2.0
// Every decision between ways to compute the same numbers, as data: its name, the instruction sets that have it (by the
// bytes of a vector), the kernels that ask, when the way is possible (else the result would be wrong), and when it is worth
// its while, which only speed depends on and tests overrule. Decisions are made once per call, before the work.
#pragma once

#include <cstdint>

#include "../../include/voxgrad.h"

#define VG_PATHS(X)                                                                                                       \
    X(threads, 16 | 32 | 64, "*", "more than one thread is allowed", "each finds enough to do")                           \
    X(sweep, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool",                                                             \
      "windows at equal steps along the width, of 1 to 16 rows of cells; backward 1 to 16 rows of windows over a cell, "  \
      "and windows no wider than 4 strides",                                                                              \
      "at most 4 cells of a window (windows over a cell) along the width, channels of few turns, not flat")               \
    X(shared, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool",                                                            \
      "neighbouring depths share planes: the average plane is in more than one window; backward a cell is",               \
      "in more than 1.2; backward and swept, in more than 2")                                                             \
    X(pairs, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool", "swept, neighbouring heights share rows, not carry_twice",   \
      "the average row is in more than 1.7 windows; backward in more than 2")                                             \
    X(carry_twice, 32 | 64, "avg_pool max_pool", "swept, 3 planes to a window, step 1 along the depth",                   \
      "the kept rows fit the second cache; two vectors of channels where they are of 32 bytes")                           \
    X(carry_once, 32 | 64, "avg_pool max_pool",                                                                           \
      "swept, a depth shares planes with the next and none with the one after; neither pairs nor carry_twice",            \
      "the kept rows fit the second cache; vectors of 64 bytes")                                                          \
    X(known, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool",                                                             \
      "swept, 3 taps at steps of 1 or 2, or 2 at steps of 1; backward also where windows do not overlap", "")             \
    X(asks, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool max_pool_grad_grad conv3d_filter",                             \
      "always; conv3d_filter: channels lie side by side, and are not listed",                                             \
      "what is read does not stay in the caches anyway, and comes in short rows")                                         \
    X(past, 32 | 64, "avg_pool avg_pool_grad max_pool max_pool_grad max_pool_grad_grad max_pool_grad_positions conv3d "   \
      "conv3d_input",                                                                                                     \
      "every vector of the result is aligned to its size; a convolution's is also kept",                                  \
      "the result has 8 MiB or more, and what is bound by memory does not fit the last cache")                            \
    X(cut_channels, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool", "more than 64 channels, not flat",                   \
      "128 channels or more, and fewer than 16 rows of outputs")                                                          \
    X(channel_blocks, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool max_pool_grad max_pool_grad_grad "                   \
      "max_pool_grad_positions",                                                                                          \
      "more than 64 channels, not flat, not swept", "so many that their rows do not fit the caches")                      \
    X(flat, 16 | 32 | 64, "*pool*", "windows at equal steps along the width",                                             \
      "at most 64 taps; channels leave so much of their last vector empty that windows nobody wants cost less")           \
    X(ring, 16 | 32 | 64, "avg_pool avg_pool_grad max_pool", "not swept, a window has rows",                              \
      "windows overlap along the height and have several planes, at most 32 rows each")                                   \
    X(together, 16 | 32 | 64, "max_pool_grad max_pool_grad_grad max_pool_positions max_pool_grad_positions",              \
      "some windows lie wholly inside along the width, at equal steps; flat, or channels fill vectors", "")               \
    X(near, 16 | 32 | 64, "max_pool_grad", "near ties are asked for (nobody may choose)", "")                             \
    X(tiles, 16 | 32 | 64, "max_pool_grad", "no windows overlap, not flat, no near ties", "")                             \
    X(byte_codes, 16 | 32 | 64, "max_pool_grad", "windows of at most 254 cells", "")                                      \
    X(fold, 16 | 32 | 64, "max_pool_grad_grad",                                                                           \
      "floats; on all axes windows at equal steps, none empty, of at most 8 cells",                                       \
      "the average cell is in more than 2 windows; not flat unless steps are 1")                                          \
    X(one_run, 16 | 32 | 64, "max_pool_grad_grad", "folded, steps of 1 along the width, all channels in a block", "")     \
    X(joined, 16 | 32 | 64, "conv3d conv3d_input conv3d_filter",                                                          \
      "neighbouring axes are left as they are, cell by cell", "")                                                         \
    X(half_vectors, 64, "conv3d conv3d_input conv3d_filter", "the result has channels and a width",                       \
      "the machine halves vectors, no instruction set was asked for, shorter ones are better filled, and multiplying "    \
      "takes most of the time")                                                                                           \
    X(one_slab, 16 | 32 | 64, "conv3d_input", "an axis has strides", "it has no dilation")                                \
    X(per_tap, 16 | 32 | 64, "conv3d conv3d_input conv3d_filter",                                                         \
      "strides or dilations along an axis, copied to a slab, not dense",                                                  \
      "the cells between the taps are more than one run per tap would store twice")                                       \
    X(narrow, 16 | 32 | 64, "conv3d conv3d_input", "the result is not empty and sums something",                          \
      "more lanes are of use along the width than along the output channels, and turning the data costs less")            \
    X(direct, 16 | 32 | 64, "conv3d conv3d_input conv3d_filter",                                                          \
      "float32 or float64, channels side by side, not narrow; a correlation: a single tap without padding along the "     \
      "width, or, not listed, taps that miss no more than its first and last column; conv3d_filter: a single tap, "       \
      "output channels that fill vectors, not swapped",                                                                   \
      "a correlation: many channels, and voxels that do not evict each other; conv3d_filter: always")                     \
    X(listed, 16 | 32 | 64, "conv3d conv3d_input conv3d_filter",                                                          \
      "at most 8 input channels, or a single tap in place; at most 2048 products, not narrow",                            \
      "conv3d_filter: at most 4 input channels")                                                                          \
    X(dense, 16 | 32 | 64, "conv3d conv3d_input", "listed, not direct",                                                   \
      "no dilation along the width, strides no wider than the window")                                                    \
    X(three, 32, "conv3d conv3d_input conv3d_filter", "3 or more vectors of output channels, neither narrow nor "         \
      "one_vector",                                                                                                       \
      "exactly 3, or tiles of three have more sums where the width is not cut well")                                      \
    X(one_vector, 16 | 32 | 64, "conv3d conv3d_input", "2 or more vectors of output channels, not narrow",                \
      "vectors of 64 bytes, short lines, neither listed nor direct")                                                      \
    X(rows, 16 | 32 | 64, "conv3d conv3d_input", "several rows of output, lines so short that two fit the registers; "    \
      "neither narrow, listed nor direct", "")                                                                            \
    X(local, 16 | 32 | 64, "conv3d conv3d_input", "there is something to compute, not narrow",                            \
      "4 MiB of filter and more, 4 sets of vectors and more, 2048 voxels and fewer")                                      \
    X(passes, 16 | 32 | 64, "conv3d conv3d_input", "several blocks of input channels",                                    \
      "their filters do not fit half of the second cache")                                                                \
    X(parts, 16 | 32 | 64, "conv3d conv3d_input", "several sets of vectors of output channels", "fewer than 9 blocks")    \
    X(kept, 16 | 32 | 64, "conv3d conv3d_input", "float32 or float64, channels last or one cell, not narrow", "")         \
    X(swapped, 16 | 32 | 64, "conv3d_filter", "fewer output channels than lanes and rows of a tile, not listed",          \
      "5 input channels or more fill lanes better")                                                                       \
    X(input_in_place, 16 | 32 | 64, "conv3d_filter",                                                                      \
      "float32 or float64, input channels side by side, neither listed, swapped nor direct",                              \
      "strides; with vectors of 64 bytes also where voxels are near or few")                                              \
    X(gradient_in_place, 16 | 32 | 64, "conv3d_filter",                                                                   \
      "float32 or float64, output channels side by side that fill vectors",                                               \
      "vectors of 64 bytes; with few input channels, few rows of sums")                                                   \
    X(flat_blocks, 16 | 32 | 64, "conv3d_filter", "listed", "there are enough blocks then")                               \
    X(segments, 16 | 32 | 64, "conv3d_filter", "several blocks", "too few tasks without, and 4 MiB hold all sums")

namespace vg {

#define VG_NAME(name, vectors, kernels, possible, worth) name,
enum class Path : int { VG_PATHS(VG_NAME) count };
#undef VG_NAME
static_assert(static_cast<int>(Path::count) <= 64);

}  // namespace vg

#if defined(VG_NAMESPACE)
namespace VG_NAMESPACE {

using vg::Path;

inline bool is_forced(const vg_how &how, Path path) { return how.force >> static_cast<int>(path) & 1; }
// Whether a way would be taken: nothing is noted.
inline bool would_take(const vg_how &how, Path path, bool possible, bool worth = true) {
    return possible && (is_forced(how, path) || (worth && !(how.avoid >> static_cast<int>(path) & 1)));
}
inline bool note(const vg_how &how, Path path, bool possible, bool worth, bool taken) {
    if (vg_seen *seen = how.seen) {
        const uint64_t bit = uint64_t{1} << static_cast<int>(path);
        (possible ? seen->possible : seen->impossible) |= bit;
        if (possible) (worth ? seen->worth : seen->unworthy) |= bit;
        if (taken) seen->taken |= bit;
    }
    return taken;
}
inline bool takes(const vg_how &how, Path path, bool possible, bool worth = true) {
    return note(how, path, possible, worth, would_take(how, path, possible, worth));
}
// How many threads, of those allowed, where it is worth waking `worth`.
inline int32_t threads_of(const vg_how &how, int64_t worth, int32_t allowed) {
    if (!takes(how, Path::threads, allowed > 1, worth > 1)) return 1;
    return is_forced(how, Path::threads) || worth > allowed ? allowed : static_cast<int32_t>(worth);
}
// A size that caches or registers suggest, or less where a test wants finer pieces.
inline int64_t cut_to(const vg_how &how, int64_t size) { return how.grain > 0 && how.grain < size ? how.grain : size; }

}  // namespace VG_NAMESPACE
#endif
