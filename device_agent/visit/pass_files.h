// SPDX-License-Identifier: Apache-2.0
// Packets with open files between the agent, the launcher and its children (SCM_RIGHTS).
#ifndef HONE_DEVICE_AGENT_VISIT_PASS_FILES_H_
#define HONE_DEVICE_AGENT_VISIT_PASS_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

namespace hone::agent {

inline constexpr size_t kFilesMax = 16;  // in one packet

// Sends one packet with at most kFilesMax files, which stay open here. False, with errno: the other end is gone.
bool SendWithFiles(int socket, std::span<const std::byte> packet, std::span<const int> files);
// Receives the next packet and returns its full length, 0 if the other end is closed, or -1 with errno. The length may
// exceed the size of `packet`; the bytes beyond are lost. The received files replace the contents of *files. The caller
// owns them; they are closed on exec. If `files` is null, the system closes them at once.
ssize_t ReceiveWithFiles(int socket, std::span<std::byte> packet, std::vector<int>* files);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_PASS_FILES_H_
