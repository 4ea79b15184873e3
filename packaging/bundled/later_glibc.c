// SPDX-License-Identifier: Apache-2.0
// What Debian 12's static libraries want of glibc and glibc 2.31 does not have. Three things; the linker names others
// that an update may bring.
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// glibc 2.32: "no second thread was ever started", upon which libstdc++ spares itself atomic operations. Never true.
char __libc_single_threaded = 0;

// glibc 2.36; libstdc++'s std::random_device.
uint32_t arc4random(void) {
  uint32_t number;
  size_t got = 0;
  while (got < sizeof(number)) {
    const ssize_t more = getrandom((char*)&number + got, sizeof(number) - got, 0);
    if (more > 0) got += (size_t)more;
  }
  return number;
}

// glibc 2.33; LLVM asks how much memory is in use when it takes the time of its passes, which nobody here asks for.
struct mallinfo2 mallinfo2(void) {
  const struct mallinfo2 unknown = {0};
  return unknown;
}
