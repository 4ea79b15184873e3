// SPDX-License-Identifier: Apache-2.0
/* The kernels of the tests' tiny package, compiled by the system's C compiler while the test runs. */
#include "base/kernel_abi.h"

enum { kRows = 4, kColumns = 8 };

#ifndef SCALE
#define SCALE 2.0f
#endif

typedef struct {
  const float *x, *bias;
  float* y;
} AddBias;

static void AddBiasToRow(void* closure, int64_t row) {
  const AddBias* work = closure;
  for (int c = 0; c < kColumns; ++c) work->y[row * kColumns + c] = work->x[row * kColumns + c] + work->bias[c];
}

/* y[r, c] = x[r, c] + bias[c]; buffers: x, bias, y */
void add_bias(void* const* buffers, void* workspace, HoneParallel* parallel) {
  (void)workspace;
  AddBias work = {buffers[0], buffers[1], buffers[2]};
  parallel->parallel_for(parallel, AddBiasToRow, &work, kRows);
}

/* y = SCALE * x, by way of the workspace; buffers: x, y */
void scale(void* const* buffers, void* workspace, HoneParallel* parallel) {
  (void)parallel;
  const float* x = buffers[0];
  float* scratch = workspace;
  float* y = buffers[1];
  for (int i = 0; i < kRows * kColumns; ++i) scratch[i] = SCALE * x[i];
  for (int i = 0; i < kRows * kColumns; ++i) y[i] = scratch[i];
}
