// SPDX-License-Identifier: Apache-2.0
// Messages between the agent and its launcher: frames (base/frame.h) on a socket. Both ends are the same program.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_CHANNEL_H_
#define HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_CHANNEL_H_

#include <google/protobuf/message_lite.h>

namespace hone::agent {

// Each returns false when the other end is gone, and Receive also when the frame holds something else.
bool SendMessage(int fd, const google::protobuf::MessageLite& message);
bool ReceiveMessage(int fd, google::protobuf::MessageLite* message);
bool SendNumber(int fd, double number);  // as it lies in memory
bool ReceiveNumber(int fd, double& number);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_CHANNEL_H_
