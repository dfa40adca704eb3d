/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole boundary between Python and the native kernels.
 *
 * A kernel is told sizes and pointers and writes every element of its output. It validates nothing,
 * allocates nothing and keeps nothing: scratch memory comes from the caller, who asked for its size first.
 * All tensors are dense and C-contiguous; no output overlaps an input.
 */
#ifndef VOXGRAD_H
#define VOXGRAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(default) /* all else is hidden, so that two builds in one process keep apart */
#endif

#define VG_ABI_VERSION 6

/* Element types. The integers exist for vg_max_pool_grad_grad, which only compares and copies. */
enum { VG_F16 = 0, VG_BF16 = 1, VG_F32 = 2, VG_F64 = 3, VG_I8 = 4, VG_I16 = 5, VG_I32 = 6, VG_I64 = 7 };

enum { VG_OK = 0, VG_CANCELLED = 1, VG_BAD_TYPE = 2, VG_NOT_DENSE = 3, VG_NOT_FINITE = 4, VG_NO_MEMORY = 5 };

enum { VG_ISA_AUTOMATIC = -1, VG_ISA_BASELINE = 0, VG_ISA_AVX2 = 1, VG_ISA_AVX512 = 2 };

/* How a problem is computed, for tests: zero for what is fastest. Results are the same in any way, up to rounding.
 * Bit i stands for entry i of vg_paths(). A path is taken if it is possible, and forced, or worth its while and not avoided.
 * `grain` > 0 cuts blocks, tiles and passes to so many rows, columns or channel blocks, whatever the caches would hold. */
typedef struct vg_seen {
    uint64_t possible, impossible, worth, unworthy, taken; /* what was found when the paths were asked for */
} vg_seen;
typedef struct vg_how {
    uint64_t force, avoid;
    int64_t grain;
    vg_seen *seen; /* where decisions are noted, or null; those of one call at a time */
} vg_how;

/* One spatial axis of a convolution: tap t of window o reads cell o*stride - before + t*dilation.
 * Cells outside 0..size-1 read as zero. `before` may be negative (the first window starts late). */
typedef struct vg_axis {
    int64_t size;     /* cells of the input          */
    int64_t out;      /* windows, cells of the output */
    int64_t window;   /* taps of the filter          */
    int64_t stride;
    int64_t dilation;
    int64_t before;
} vg_axis;

/* Filters are always [D, H, W, in_channels / groups, out_channels].
 * Data is [N, D, H, W, C] where channels_last, else [N, C, D, H, W]. Axes are depth, height, width. */
typedef struct vg_conv {
    int32_t dtype;
    int32_t channels_last;
    int64_t batch;
    int64_t in_channels;
    int64_t out_channels;
    int64_t groups;
    vg_axis axis[3];
    vg_how how;
} vg_conv;

/* One spatial axis of a pool, as tables, so that a kernel knows no padding rule.
 * Window o covers cells lo[o]..hi[o]-1; cell i is covered by windows first[i]..last[i]-1 (0 <= first <= last <= out).
 * lo and hi never fall. Cells outside 0..size-1 are not touched, but an average still divides by all of hi - lo. */
typedef struct vg_span {
    int64_t size;
    int64_t out;
    const int64_t *lo, *hi;       /* `out` entries  */
    const int64_t *first, *last;  /* `size` entries */
} vg_span;

/* Data is [batch, D, H, W, channels]. A channels-first pool is the same with batch*channels images of one channel. */
typedef struct vg_pool {
    int32_t dtype;
    int32_t near_ties; /* vg_max_pool_grad: 0 = the first cell equal to the maximum takes all,
                          1 = every cell closer than 1e-5 to it does */
    int64_t batch;
    int64_t channels;
    vg_span axis[3];
    vg_how how;
} vg_pool;

/* How to run a call. `cancel` may be null; once it is non-zero the call stops early and returns VG_CANCELLED.
 * `scratch` is 64-byte aligned and as large as the matching vg_*_scratch said for the same `threads`. */
typedef struct vg_run {
    int32_t threads;
    int32_t reserved;
    const volatile int32_t *cancel;
    void *scratch;
} vg_run;

int32_t vg_abi_version(void);
int32_t vg_isas(void);              /* the instruction sets that are compiled in and that this CPU has: bit 1 << VG_ISA_... */
int32_t vg_isa(void);               /* the one in use */
/* 0 where it is not one of these (nothing changes), else 1. Automatic, as at the start, is the widest, and for problems that do
   not fill its vectors another. */
int32_t vg_use_isa(int32_t isa);

/* The paths: ways to compute the same numbers that are chosen by shape, size or instruction set. `vectors` has the bits
 * 16, 32 and 64 of the bytes of the vectors that have it, `kernels` is a list of names with spaces or a pattern, `worth` is
 * empty where the path is taken whenever it is possible. A call with a set `cancel` decides all and computes nothing. */
typedef struct vg_path {
    const char *name;
    int64_t vectors;
    const char *kernels, *possible, *worth;
} vg_path;
const vg_path *vg_paths(int32_t *count);

int64_t vg_conv3d_scratch(const vg_conv *problem, int32_t threads);
int64_t vg_conv3d_input_scratch(const vg_conv *problem, int32_t threads);
int64_t vg_conv3d_filter_scratch(const vg_conv *problem, int32_t threads);
int64_t vg_avg_pool_scratch(const vg_pool *problem, int32_t threads);
int64_t vg_avg_pool_grad_scratch(const vg_pool *problem, int32_t threads);
int64_t vg_max_pool_scratch(const vg_pool *problem, int32_t threads);
int64_t vg_max_pool_grad_scratch(const vg_pool *problem, int32_t threads);
int64_t vg_max_pool_grad_grad_scratch(const vg_pool *problem, int32_t threads);

/* The convolutions return VG_NOT_FINITE instead of VG_OK where the filter, or the gradient of the filter, holds a value
 * that is infinite or NaN: all is computed, but taps in the padding were left out, not multiplied with zeros. */

/* y = correlation of x with the filter */
int32_t vg_conv3d(const vg_conv *problem, const void *x, const void *filter, void *y, const vg_run *run);
/* dx = the transpose of vg_conv3d in x, applied to dy */
int32_t vg_conv3d_input(const vg_conv *problem, const void *filter, const void *dy, void *dx, const vg_run *run);
/* dfilter = the transpose of vg_conv3d in the filter, applied to dy */
int32_t vg_conv3d_filter(const vg_conv *problem, const void *x, const void *dy, void *dfilter, const vg_run *run);

/* y = mean over the window; 0 for an empty window */
int32_t vg_avg_pool(const vg_pool *problem, const void *x, void *y, const vg_run *run);
int32_t vg_avg_pool_grad(const vg_pool *problem, const void *dy, void *dx, const vg_run *run);
/* y = maximum over the window, NaN never wins; -inf for an empty window or one of NaN only */
int32_t vg_max_pool(const vg_pool *problem, const void *x, void *y, const vg_run *run);
/* dx[i] = sum of dy[o] over the windows o in which i is the first cell (depth, height, width order) with x[i] == y[o] */
int32_t vg_max_pool_grad(const vg_pool *problem, const void *x, const void *y, const void *dy, void *dx,
                         const vg_run *run);
/* out[o] = grad[i] for that cell i, 0 where no cell of the window equals y[o] */
int32_t vg_max_pool_grad_grad(const vg_pool *problem, const void *x, const void *y, const void *grad, void *out,
                              const vg_run *run);

/* Max pooling for callers that run forward and backward: the forward pass keeps, as one byte, which cell of its window
 * (those inside the volume, counted in depth, height, width order) each maximum is; 255 where all are NaN. For windows of
 * at most 254 cells. The gradients then need neither x nor y; near_ties has no meaning here. */
int64_t vg_max_pool_positions_scratch(const vg_pool *problem, int32_t threads);
int64_t vg_max_pool_grad_positions_scratch(const vg_pool *problem, int32_t threads);
int64_t vg_max_pool_grad_grad_positions_scratch(const vg_pool *problem, int32_t threads);
int32_t vg_max_pool_positions(const vg_pool *problem, const void *x, void *y, uint8_t *positions, const vg_run *run);
int32_t vg_max_pool_grad_positions(const vg_pool *problem, const uint8_t *positions, const void *dy, void *dx,
                                   const vg_run *run);
int32_t vg_max_pool_grad_grad_positions(const vg_pool *problem, const uint8_t *positions, const void *grad, void *out,
                                        const vg_run *run);

/* What NumPy's array object holds behind the header of every object; fixed by NumPy's ABI. It lets a caller hand over
 * arrays without asking each for its address. */
typedef struct vg_numpy {
    void *data;
    int nd;
    intptr_t *shape, *strides;
    void *base, *descr;
    int flags;
} vg_numpy;

/* A call that waits for its arrays: a kernel of one instruction set, its problem, the number of its arrays, the bytes of
 * scratch memory that it needs, and the size of the header of every object. Nothing changes it, so any number of calls may
 * use it at the same time, one inside another too. */
typedef struct vg_ready {
    void *kernel;
    const void *problem;
    int64_t count, scratch, header;
    int32_t threads;
} vg_ready;

/* Makes a call ready: `name` is that of a function above without its "vg_". 0 where there is none of this name, or no such
 * instruction set, else 1. The problem must stay where it is. */
int32_t vg_get_ready(vg_ready *ready, const char *name, const void *problem, int32_t threads, int32_t isa);

/* Runs a ready call on array objects. VG_NOT_DENSE, and nothing is done, where one of them is not C-contiguous and aligned;
 * VG_NO_MEMORY where there is none for the scratch. */
int32_t vg_call(const vg_ready *ready, const char *const *arrays);
/* The same on data; `cancel` as in vg_run. */
int32_t vg_call_at(const vg_ready *ready, const void *const *data, const volatile int32_t *cancel);

/* Frees the scratch memory that waits for the next call; the number of bytes. */
int64_t vg_release_scratch(void);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
