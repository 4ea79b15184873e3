// SPDX-License-Identifier: Apache-2.0
/* A C program against the shared library: loads the tests' tiny package, runs it on ones and prints y[0]. */
#include <stdio.h>

#include "deploy/runtime/hone.h"

static int Fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, hone_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  HoneModel* model = NULL;
  if (hone_load(argv[1], NULL, &model) != HONE_OK) return Fail("load");
  DLTensor x, y;
  if (hone_get_input(model, 0, &x) != HONE_OK) return Fail("input");
  for (int i = 0; i < 32; ++i) ((float*)x.data)[i] = 1.0f;
  if (hone_run(model) != HONE_OK) return Fail("run");
  if (hone_get_output(model, 0, &y) != HONE_OK) return Fail("output");
  printf("y[0] = %g\n", ((const float*)y.data)[0]);
  hone_free(model);
  return 0;
}
