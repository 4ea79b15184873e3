// SPDX-License-Identifier: Apache-2.0
// Resource limits (setrlimit) of this process. A child lowers them between fork and its work; a program raises them at
// its start. All functions are safe to call after fork in a process with threads.
#ifndef HONE_BASE_RESOURCE_LIMIT_H_
#define HONE_BASE_RESOURCE_LIMIT_H_

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>

namespace hone {

// Sets the soft and hard limit of `resource` for this process and its children, so they cannot raise it again. If the
// system refuses, the limit stays as it was.
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

// The largest file in bytes that this process may write; RLIM_INFINITY if there is no limit. A longer write raises
// SIGXFSZ, which ends the process unless it handles or ignores the signal.
inline uint64_t FileBytesMax() {
  rlimit bytes{};
  return getrlimit(RLIMIT_FSIZE, &bytes) == 0 ? bytes.rlim_cur : RLIM_INFINITY;
}

// Ignores SIGXFSZ in this process and its children, so that a write beyond the limit fails with EFBIG and can be
// reported like a full disk. Call it only at the start of main: a library must not change signal handling.
inline void IgnoreFileSizeSignal() { signal(SIGXFSZ, SIG_IGN); }

// Raises the limit of open files, which also limits connections, to the maximum that the system allows. A shell's
// default is 1024. Returns that maximum, even if the system refuses to raise the limit; 0 if it cannot be read.
inline uint64_t RaiseOpenFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_max;
}

}  // namespace hone

#endif  // HONE_BASE_RESOURCE_LIMIT_H_
