// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/open/counted_allocations.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <fstream>

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// glibc's own names of the functions that are replaced. `new` and posix_memalign are not: `new` calls malloc or
// aligned_alloc, and nothing in the runtime calls the other.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}

namespace hone {

int64_t Allocations() { return allocations.load(); }

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace hone
