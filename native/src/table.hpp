// SPDX-License-Identifier: Apache-2.0
// The one list of the kernels: what C declares in voxgrad.h, what each unit defines, what each instruction set offers and
// what abi.cpp calls is made from it, each by its name.
#pragma once

#include "../include/voxgrad.h"

// X(name, namespace of the kernel, type of the problem, parameters, arguments), by the unit that defines them.
#define VG_UNIT_CONV3D(X)                                                                                          \
    X(conv3d, conv, vg_conv, (const vg_conv *p, const void *x, const void *w, void *y, const vg_run *run),         \
      (p, x, w, y, run))                                                                                           \
    X(conv3d_input, conv, vg_conv, (const vg_conv *p, const void *w, const void *dy, void *dx, const vg_run *run), \
      (p, w, dy, dx, run))
#define VG_UNIT_CONV3D_FILTER(X)                                                                                    \
    X(conv3d_filter, conv, vg_conv, (const vg_conv *p, const void *x, const void *dy, void *dw, const vg_run *run), \
      (p, x, dy, dw, run))
#define VG_UNIT_POOL_AVG(X) \
    X(avg_pool, pool, vg_pool, (const vg_pool *p, const void *x, void *y, const vg_run *run), (p, x, y, run))
#define VG_UNIT_POOL_AVG_GRAD(X) \
    X(avg_pool_grad, pool, vg_pool, (const vg_pool *p, const void *dy, void *dx, const vg_run *run), (p, dy, dx, run))
#define VG_UNIT_POOL_MAX(X) \
    X(max_pool, pool, vg_pool, (const vg_pool *p, const void *x, void *y, const vg_run *run), (p, x, y, run))
#define VG_UNIT_POOL_MAX_GRADS(X)                                                                       \
    X(max_pool_grad, pool, vg_pool,                                                                     \
      (const vg_pool *p, const void *x, const void *y, const void *dy, void *dx, const vg_run *run),    \
      (p, x, y, dy, dx, run))                                                                           \
    X(max_pool_grad_grad, pool, vg_pool,                                                                \
      (const vg_pool *p, const void *x, const void *y, const void *grad, void *out, const vg_run *run), \
      (p, x, y, grad, out, run))
#define VG_UNIT_POOL_POSITIONS(X)                                                                                   \
    X(max_pool_positions, pool, vg_pool,                                                                            \
      (const vg_pool *p, const void *x, void *y, uint8_t *positions, const vg_run *run), (p, x, y, positions, run)) \
    X(max_pool_grad_positions, pool, vg_pool,                                                                       \
      (const vg_pool *p, const uint8_t *positions, const void *dy, void *dx, const vg_run *run),                    \
      (p, positions, dy, dx, run))                                                                                  \
    X(max_pool_grad_grad_positions, pool, vg_pool,                                                                  \
      (const vg_pool *p, const uint8_t *positions, const void *grad, void *out, const vg_run *run),                 \
      (p, positions, grad, out, run))
#define VG_KERNELS(X)         \
    VG_UNIT_CONV3D(X)         \
    VG_UNIT_CONV3D_FILTER(X)  \
    VG_UNIT_POOL_AVG(X)       \
    VG_UNIT_POOL_AVG_GRAD(X)  \
    VG_UNIT_POOL_MAX(X)       \
    VG_UNIT_POOL_MAX_GRADS(X) \
    VG_UNIT_POOL_POSITIONS(X)

// What a unit writes behind the kernels it includes: the functions that the tables point at.
#define VG_EXPORT(name, family, problem, parameters, arguments)                                              \
    int64_t name##_scratch(const problem *p, int32_t threads) { return family::name##_scratch(p, threads); } \
    int32_t name parameters { return family::name arguments; }

#define VG_DECLARE(name, family, problem, parameters, arguments) \
    int64_t name##_scratch(const problem *, int32_t threads);    \
    int32_t name parameters;

namespace vg {

#define VG_FIELD(name, family, problem, parameters, arguments)   \
    int64_t (*name##_scratch)(const problem *, int32_t threads); \
    int32_t(*name) parameters;

// One table per instruction set; abi.cpp picks one at run time.
struct Kernels {
    VG_KERNELS(VG_FIELD)
};

#undef VG_FIELD

}  // namespace vg

#define VG_ISA(name)                  \
    namespace name {                  \
    VG_KERNELS(VG_DECLARE)            \
    extern const vg::Kernels kernels; \
    }
VG_ISA(vg_baseline)
VG_ISA(vg_avx2)
VG_ISA(vg_avx512)
#undef VG_ISA
#undef VG_DECLARE
