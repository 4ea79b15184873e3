#include "device_agent/make_device.h"

#include <fmt/format.h>

#include <string_view>

#include "device_agent/cpu/cpu_device.h"
#include "device_agent/opencl/opencl_device.h"

namespace hone::agent {
namespace {

// A kind of device, by the word before the colon.
struct DeviceKind {
  std::string_view word;
  bool has_selector;  // there may be several: `word:NAME` is one of them
  std::unique_ptr<Device> (*make)(const std::string& selector, const std::string& folder);
};

constexpr DeviceKind kDeviceKinds[] = {
    {"cpu", false,
     [](const std::string&, const std::string&) -> std::unique_ptr<Device> { return std::make_unique<CpuDevice>(); }},
    {"opencl", true,
     [](const std::string& selector, const std::string& folder) -> std::unique_ptr<Device> {
       return std::make_unique<OpenClDevice>(selector, folder);
     }},
};

}  // namespace

std::string DeviceKinds() {
  std::string list;
  for (const DeviceKind& kind : kDeviceKinds) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", kind.word);
    if (kind.has_selector) list += fmt::format(", {}:NAME", kind.word);
  }
  return list;
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& text, const std::string& folder) {
  const size_t colon = text.find(':');
  for (const DeviceKind& kind : kDeviceKinds) {
    if (text.substr(0, colon) != kind.word || (colon != std::string::npos && !kind.has_selector)) continue;
    return kind.make(colon == std::string::npos ? "" : text.substr(colon + 1), folder);
  }
  return absl::InvalidArgumentError(fmt::format("there is no kind of device '{}'; there are: {}", text, DeviceKinds()));
}

}  // namespace hone::agent
