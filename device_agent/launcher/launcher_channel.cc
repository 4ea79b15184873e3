// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/launcher_channel.h"

#include <cstring>
#include <string>
#include <string_view>

#include "base/frame.h"

namespace hone::agent {

bool SendMessage(int fd, const google::protobuf::MessageLite& message) {
  return SendFrame(fd, message.SerializeAsString());
}

bool ReceiveMessage(int fd, google::protobuf::MessageLite* message) {
  std::string bytes;
  return ReceiveFrame(fd, &bytes) && message->ParseFromString(bytes);
}

bool SendNumber(int fd, double number) {
  return SendFrame(fd, std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
}

bool ReceiveNumber(int fd, double& number) {
  std::string bytes;
  if (!ReceiveFrame(fd, &bytes) || bytes.size() != sizeof number) return false;
  std::memcpy(&number, bytes.data(), sizeof number);
  return true;
}

}  // namespace hone::agent
