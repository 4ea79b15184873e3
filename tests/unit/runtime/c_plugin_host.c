// SPDX-License-Identifier: Apache-2.0
/* A C program like c_program.c that loads the shared library at run time with RTLD_LOCAL, as the foreign function
 * interfaces of other languages do: the library's dependencies are not in the global scope of the process. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "deploy/runtime/hone.h"

static void* library;

/* C does not convert void* to a pointer to a function, so the bytes are copied. */
static void Find(const char* name, void* function) {
  void* const found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  HoneStatus (*load)(const char*, const HoneLoadOptions*, HoneModel**);
  HoneStatus (*run)(HoneModel*);
  HoneStatus (*get_input)(HoneModel*, size_t, DLTensor*);
  HoneStatus (*get_output)(HoneModel*, size_t, DLTensor*);
  const char* (*error)(void);
  void (*release)(HoneModel*);
  Find("hone_load", &load);
  Find("hone_run", &run);
  Find("hone_get_input", &get_input);
  Find("hone_get_output", &get_output);
  Find("hone_error", &error);
  Find("hone_free", &release);
  HoneModel* model = NULL;
  DLTensor x, y;
  if (load(argv[2], NULL, &model) != HONE_OK || get_input(model, 0, &x) != HONE_OK) {
    fprintf(stderr, "%s\n", error());
    return 1;
  }
  for (int i = 0; i < 32; ++i) ((float*)x.data)[i] = 1.0f;
  if (run(model) != HONE_OK || get_output(model, 0, &y) != HONE_OK) {
    fprintf(stderr, "%s\n", error());
    return 1;
  }
  printf("y[0] = %g\n", ((const float*)y.data)[0]);
  release(model);
  return 0;
}
