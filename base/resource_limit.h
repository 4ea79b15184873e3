// SPDX-License-Identifier: Apache-2.0
// Limits of this process: lowered in a child between fork and what it is to do, or raised at the start of a program.
// Safe after fork in a process with threads.
#ifndef HONE_BASE_RESOURCE_LIMIT_H_
#define HONE_BASE_RESOURCE_LIMIT_H_

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>

namespace hone {

// For this process and its children, not to be raised again; what the system refuses is left as it was.
inline void LimitResource(int resource, uint64_t value) {
  const rlimit limit = {value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

inline void LimitMemory(uint64_t bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void)bytes;  // a sanitizer's shadow memory needs terabytes of address space
#else
  LimitResource(RLIMIT_AS, bytes);
#endif
}

// The largest file that this process may write; more of it raises SIGXFSZ, which ends a process that does not care.
inline uint64_t MostFileBytes() {
  rlimit bytes{};
  return getrlimit(RLIMIT_FSIZE, &bytes) == 0 ? bytes.rlim_cur : RLIM_INFINITY;
}

// What goes beyond that fails as on a full disk (EFBIG) and can be told, here and in children. For the beginning of
// main: a library leaves signals alone.
inline void FailBeyondMostFileBytes() { signal(SIGXFSZ, SIG_IGN); }

// As many open files, and so connections, as the system allows, where a shell's default is 1024. Returns how many.
inline uint64_t AllowManyFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_max;
}

}  // namespace hone

#endif  // HONE_BASE_RESOURCE_LIMIT_H_
