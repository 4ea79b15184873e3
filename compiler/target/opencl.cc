// SPDX-License-Identifier: Apache-2.0
// Targets that are reached through OpenCL: `opencl` (the first device), `opencl -device=NAME -units=8 -lanes=256`.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/status.h"
#include "compiler/target/device_roofline.h"
#include "compiler/target/find_device.h"
#include "compiler/target/host.h"
#include "compiler/target/target.h"
#include "compiler/target/target_text.h"
#include "drivers/lane_drivers.h"

namespace hone::target {
namespace {

constexpr std::string_view kWords[] = {"opencl"};

Target Typical() {
  Target target;
  target.kind = Kind::kOpenCl;
  target.hierarchy = {.units = 1, .max_lanes = 256, .lane_width = 8};
  target.memory.registers_bytes = 1 << 10;
  target.memory.local_bytes = target.memory.registers_bytes;
  target.memory.shared_bytes = target.memory.default_shared_bytes = 32 << 10;
  target.memory.shared_gain = 4;
  target.memory.l3_bytes = 0;
  target.vector_bits = 128;
  target.vector_registers = 64;
  return target;
}

std::vector<Number> Numbers(Target& target) {
  Hierarchy& hierarchy = target.hierarchy;
  Memory& memory = target.memory;
  return {{"-units", &hierarchy.units, nullptr},      {"-lanes", &hierarchy.max_lanes, nullptr},
          {"-width", &hierarchy.lane_width, nullptr}, {"-shared", nullptr, &memory.shared_bytes},
          {"-gain", &memory.shared_gain, nullptr},    {"-registers", nullptr, &memory.registers_bytes},
          {"-l1", nullptr, &memory.l1_bytes},         {"-l2", nullptr, &memory.l2_bytes},
          {"-vector", &target.vector_bits, nullptr}};
}

// Takes the driver's values for the target's device, limited to plausible ones (a CPU's "local memory" is as large as a
// cache, and its groups have no real limit). Without a device the typical values stay.
absl::Status ReadDeviceLimits(Target& target) {
  std::string elsewhere = "give all its numbers, as `hone devices --json` shows them:";
  for (const Number& number : Numbers(target)) elsewhere += fmt::format(" {}=", number.name);
  HONE_ASSIGN_OR_RETURN(const auto found, FindDevice<drivers::OpenClDriver>(target.device, elsewhere));
  if (!found.has_value()) return absl::OkStatus();
  const drivers::opencl::DeviceInfo& info = *found;
  target.hierarchy.units = static_cast<int>(std::max<int64_t>(1, info.compute_units));
  target.hierarchy.max_lanes =
      static_cast<int>(std::clamp<int64_t>(info.group_lanes_max, 1, target.hierarchy.max_lanes));
  if (!info.has_local_memory) target.memory.shared_gain = 1;
  if (info.is_cpu) {
    target.vector_bits = HostCpu().vector_bits;
  } else {
    target.hierarchy.lane_width = static_cast<int>(std::max<int64_t>(1, info.preferred_multiple));
    target.memory.shared_bytes = info.local_bytes;
  }
  return absl::OkStatus();
}

// A complete text, as Print writes it, needs no inspection of this machine.
absl::StatusOr<Target> Parse(const TargetText& text) {
  Target target = Typical();
  const std::vector<Number> numbers = Numbers(target);
  const bool complete =
      std::all_of(numbers.begin(), numbers.end(), [&](const Number& n) { return text.Find(n.name) != nullptr; });
  const TargetText::Option* const device = text.Find("-device");
  if (device != nullptr) target.device = device->value;
  if (!complete) HONE_RETURN_IF_ERROR(ReadDeviceLimits(target));
  HONE_RETURN_IF_ERROR(ParseNumbers(text, {"-device="}, target));
  if (target.hierarchy.max_lanes < 2) {
    return absl::InvalidArgumentError("target: -lanes=1: groups for OpenCL have at least 2 lanes; give 2 or more");
  }
  target.memory.local_bytes = target.memory.registers_bytes;
  target.memory.default_shared_bytes = target.memory.shared_bytes;
  target.vector_registers =
      static_cast<int>(std::max<int64_t>(1, target.memory.registers_bytes * 8 / target.vector_bits));
  return target;
}

std::string PrintOpenCl(const Target& target) {
  return target.device.empty() ? "opencl" : "opencl -device=" + target.device;
}

std::string DeviceOfOpenCl(const Target& target) {
  return target.device.empty() ? "opencl" : "opencl:" + target.device;
}

}  // namespace

constinit const KindEntry kOpenClEntry = {
    kGridFacts, kWords, Typical, Parse, PrintOpenCl, Numbers, DeviceOfOpenCl, RooflineOfDevice<drivers::OpenClDriver>};

}  // namespace hone::target
