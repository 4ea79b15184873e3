// SPDX-License-Identifier: Apache-2.0
/* The golden kernel of CPUs: a product of two small matrices, twice. Built into a shared object of its own, which the
 * agent carries (golden.cc) and has measured like any other batch. Whatever changes here, or in the flags that build it,
 * is another kernel: its times do not compare with those before. */
#include "base/kernel_abi.h"

enum { kRows = 64 };

/* Element by element: what the other must agree with. */
void golden_reference(void* const* buffers, void* workspace, HoneParallel* parallel) {
  const float *a = buffers[0], *b = buffers[1];
  float* c = buffers[2];
  (void)workspace;
  (void)parallel;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kRows; ++j) {
      float sum = 0;
      for (int k = 0; k < kRows; ++k) sum += a[i * kRows + k] * b[k * kRows + j];
      c[i * kRows + j] = sum;
    }
  }
}

/* Row by row, as a compiler can vectorize it. */
void golden(void* const* buffers, void* workspace, HoneParallel* parallel) {
  const float *restrict a = buffers[0], *restrict b = buffers[1];
  float* restrict c = buffers[2];
  (void)workspace;
  (void)parallel;
  for (int i = 0; i < kRows; ++i) {
    float* restrict row = c + i * kRows;
    for (int j = 0; j < kRows; ++j) row[j] = 0;
    for (int k = 0; k < kRows; ++k) {
      const float factor = a[i * kRows + k];
      for (int j = 0; j < kRows; ++j) row[j] += factor * b[k * kRows + j];
    }
  }
}
