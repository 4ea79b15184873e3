// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/make_device.h"

#include <fmt/format.h>

#include <string_view>

#include "device_agent/devices/cpu/cpu_device.h"
#include "device_agent/devices/cuda/cuda_device.h"
#include "device_agent/devices/opencl/opencl_device.h"

namespace hone::agent {
namespace {

// A row of the table of kinds, found by the word before the colon.
struct DeviceKind {
  std::string_view word;
  std::string_view selector;  // there may be several: `word:SELECTOR` is one of them
  std::unique_ptr<Device> (*make)(const std::string& selector, const std::string& folder);
};

constexpr DeviceKind kDeviceKinds[] = {
    {"cpu", "N",
     [](const std::string& selector, const std::string&) -> std::unique_ptr<Device> {
       return std::make_unique<CpuDevice>(selector);
     }},
    {"opencl", "NAME",
     [](const std::string& selector, const std::string& folder) -> std::unique_ptr<Device> {
       return std::make_unique<OpenClDevice>(selector, folder);
     }},
    {"cuda", "NAME",
     [](const std::string& selector, const std::string& folder) -> std::unique_ptr<Device> {
       return std::make_unique<CudaDevice>(selector, folder);
     }},
};

}  // namespace

std::string DeviceKinds() {
  std::string list;
  for (const DeviceKind& kind : kDeviceKinds) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", kind.word);
    list += fmt::format(", {}:{}", kind.word, kind.selector);
  }
  return list;
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& text, const std::string& folder) {
  const size_t colon = text.find(':');
  for (const DeviceKind& kind : kDeviceKinds) {
    if (text.substr(0, colon) != kind.word) continue;
    return kind.make(colon == std::string::npos ? "" : text.substr(colon + 1), folder);
  }
  return absl::InvalidArgumentError(fmt::format("there is no device '{}'; give one of: {}", text, DeviceKinds()));
}

}  // namespace hone::agent
