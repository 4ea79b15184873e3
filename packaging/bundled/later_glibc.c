// SPDX-License-Identifier: Apache-2.0
// Symbols that Debian 12's static libraries need and glibc 2.31 does not have. If an update of Debian needs another one,
// the linker reports it as undefined.
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// Since glibc 2.32: true while no second thread was started; libstdc++ then avoids atomic operations. Always false here,
// which is correct for every program.
char __libc_single_threaded = 0;

// Since glibc 2.36, for std::random_device of libstdc++.
uint32_t arc4random(void) {
  uint32_t number;
  size_t got = 0;
  while (got < sizeof(number)) {
    const ssize_t more = getrandom((char*)&number + got, sizeof(number) - got, 0);
    if (more > 0) got += (size_t)more;
  }
  return number;
}

// Since glibc 2.33. LLVM asks for the memory in use when it times its passes, which Hone does not turn on.
struct mallinfo2 mallinfo2(void) {
  const struct mallinfo2 unknown = {0};
  return unknown;
}
