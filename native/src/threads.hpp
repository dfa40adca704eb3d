// SPDX-License-Identifier: Apache-2.0
// A small persistent thread pool. Workers sleep when idle; the caller works too.
#pragma once

#include <cstdint>

namespace vg {

using Task = void (*)(void *context, int64_t index, int worker);

// Runs task(context, i, worker) for i in 0..count-1 on at most `threads` threads; worker < threads names the
// thread, for its share of the scratch memory. Which thread runs which index is open, so a task must not let the
// result depend on it. Returns false if *cancel became non-zero before all indices ran.
bool parallel_for(int64_t count, int threads, const volatile int32_t *cancel, Task task, void *context);

template <class Body>
bool parallel(int64_t count, int threads, const volatile int32_t *cancel, Body &&body) {
    return parallel_for(
        count, threads, cancel,
        [](void *context, int64_t index, int worker) { (*static_cast<Body *>(context))(index, worker); }, &body);
}

}  // namespace vg
