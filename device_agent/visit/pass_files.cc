// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/pass_files.h"

#include <string.h>
#include <sys/socket.h>

#include "base/status.h"

namespace hone::agent {
namespace {

struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kFilesMax * sizeof(int))] = {};
};

}  // namespace

bool SendWithFiles(int socket, std::span<const std::byte> packet, std::span<const int> files) {
  HONE_CHECK(files.size() <= kFilesMax);
  iovec bytes{const_cast<std::byte*>(packet.data()), packet.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size_bytes());
    memcpy(CMSG_DATA(header), files.data(), files.size_bytes());
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
}

ssize_t ReceiveWithFiles(int socket, std::span<std::byte> packet, std::vector<int>* files) {
  iovec bytes{packet.data(), packet.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (files != nullptr) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
  }
  const ssize_t size = recvmsg(socket, &message, MSG_TRUNC | MSG_CMSG_CLOEXEC);
  if (size < 0 || files == nullptr) return size;
  files->clear();
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return size;
  files->resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  memcpy(files->data(), CMSG_DATA(header), files->size() * sizeof(int));
  return size;
}

}  // namespace hone::agent
