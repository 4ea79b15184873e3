// SPDX-License-Identifier: Apache-2.0
// Packets between the launcher and its children that open files travel with.
#ifndef HONE_DEVICE_AGENT_VISIT_PASS_FILES_H_
#define HONE_DEVICE_AGENT_VISIT_PASS_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

namespace hone::agent {

inline constexpr size_t kFilesMax = 4;  // in one packet

// One packet, and at most kFilesMax files, which stay open here. False: the other end is gone, with errno.
bool SendWithFiles(int socket, std::span<const std::byte> packet, std::span<const int> files);
// The next packet, of which what does not fit into `packet` is lost, and the files that came with it, which belong to
// the caller and which no program inherits; if `files` is null, the system closes them. The length that the packet had;
// -1 with errno.
ssize_t ReceiveWithFiles(int socket, std::span<std::byte> packet, std::vector<int>* files);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_PASS_FILES_H_
