// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/launcher_channel.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/frame.h"
#include "device_agent/visit/pass_files.h"

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

bool SendFiles(int fd, const std::vector<int>& files) {
  const std::byte mark{1};  // a stream carries files only along with a byte
  return SendWithFiles(fd, std::span(&mark, 1), files);
}

bool ReceiveFiles(int fd, std::vector<MemoryFile>& files) {
  std::byte mark{};
  std::vector<int> descriptors;
  ssize_t size = 0;
  while ((size = ReceiveWithFiles(fd, std::span(&mark, 1), &descriptors)) < 0 && errno == EINTR) {
  }
  files.clear();
  for (const int descriptor : descriptors) files.emplace_back(descriptor);
  return size == 1;
}

}  // namespace hone::agent
