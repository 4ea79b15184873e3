// SPDX-License-Identifier: Apache-2.0
// Writes all bytes to a descriptor, however many calls the system needs for it.
#ifndef HONE_BASE_WRITE_ALL_H_
#define HONE_BASE_WRITE_ALL_H_

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace hone {

// False: errno says why; a part may have been written. A pipe or socket whose reader is gone also raises SIGPIPE,
// unless the process ignores it.
inline bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace hone

#endif  // HONE_BASE_WRITE_ALL_H_
