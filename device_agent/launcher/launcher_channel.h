// SPDX-License-Identifier: Apache-2.0
// Messages between the agent and its launcher: frames (base/frame.h) on a socket, and open files. Both ends are the
// same program.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_CHANNEL_H_
#define HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_CHANNEL_H_

#include <google/protobuf/message_lite.h>

#include <vector>

#include "base/memory_file.h"

namespace hone::agent {

// Each returns false when the other end is gone, and Receive also when the frame holds something else.
bool SendMessage(int fd, const google::protobuf::MessageLite& message);
bool ReceiveMessage(int fd, google::protobuf::MessageLite* message);
bool SendNumber(int fd, double number);  // as it lies in memory
bool ReceiveNumber(int fd, double& number);
// At most kFilesMax (visit/pass_files.h). They stay open in the sender; the receiver owns what it gets.
bool SendFiles(int fd, const std::vector<int>& files);
bool ReceiveFiles(int fd, std::vector<MemoryFile>& files);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_CHANNEL_H_
