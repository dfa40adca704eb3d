// SPDX-License-Identifier: Apache-2.0
// Multiply-and-add in registers alone: what the units of this processor can do at most.

#ifdef __aarch64__
#define REGISTER "w"
#else
#define REGISTER "v"
#endif

template <typename T>
static double flop(long turns) {
  typedef T vec __attribute__((vector_size(VECTOR_BYTES)));
  constexpr int chains = 12;  // more than latency times units, so that no sum waits for itself
  vec sums[chains] = {};
  const vec a = vec{} + T(0.5), b = vec{} + T(0.25);
  for (long turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) {
      sums[i] = sums[i] * a + b;
      asm volatile("" : "+" REGISTER(sums[i]));  // keeps the compiler from computing the sums itself
    }
  }
  return 2.0 * chains * (VECTOR_BYTES / sizeof(T)) * turns;
}

extern "C" double flop_float32(long turns) { return flop<float>(turns); }
extern "C" double flop_float64(long turns) { return flop<double>(turns); }
