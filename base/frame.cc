// SPDX-License-Identifier: Apache-2.0
#include "base/frame.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace hone {
namespace {

constexpr uint64_t kFrameBytesMax = 256ull << 20;  // limit of a received message

bool WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool ReadAll(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = read(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

bool SendFrame(int socket, std::string_view bytes) {
  const uint64_t size = bytes.size();
  return WriteAll(socket, reinterpret_cast<const char*>(&size), sizeof size) &&
         WriteAll(socket, bytes.data(), bytes.size());
}

bool ReceiveFrame(int socket, std::string* bytes) {
  uint64_t size = 0;
  if (!ReadAll(socket, reinterpret_cast<char*>(&size), sizeof size) || size > kFrameBytesMax) return false;
  bytes->resize(size);
  return ReadAll(socket, bytes->data(), size);
}

}  // namespace hone
