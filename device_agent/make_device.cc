#include "device_agent/make_device.h"

#include <fmt/format.h>

#include <string_view>

#include "device_agent/cpu/cpu_device.h"
#include "device_agent/opencl/opencl_device.h"

namespace hone::agent {

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& text, const std::string& folder) {
  constexpr std::string_view kNamed = "opencl:";
  if (text == "cpu") return std::make_unique<CpuDevice>();
  if (text == "opencl") return std::make_unique<OpenClDevice>("", folder);
  if (text.starts_with(kNamed)) return std::make_unique<OpenClDevice>(text.substr(kNamed.size()), folder);
  return absl::InvalidArgumentError(
      fmt::format("there is no kind of device '{}'; there are: cpu, opencl, opencl:NAME", text));
}

}  // namespace hone::agent
