// SPDX-License-Identifier: Apache-2.0
// Targets that are NVIDIA's GPUs: `cuda -arch=sm_87`, or `cuda:sm_87` for short; `cuda` alone is this machine's device.
//
// Each architecture's capabilities are a row of the table below. Numbers that differ from board to board (units,
// caches) are those of the best-known board, and options can replace them. Code for one architecture also runs on newer
// ones, because the driver compiles it again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "base/status.h"
#include "compiler/target/device_roofline.h"
#include "compiler/target/find_device.h"
#include "compiler/target/target.h"
#include "compiler/target/target_text.h"
#include "drivers/lane_drivers.h"

namespace hone::target {
namespace {

using ir::TensorInstruction;

// The resources that the resident groups of a unit share, and the registers that one group may have. Source: "CUDA C++
// Programming Guide", "Technical Specifications per Compute Capability".
struct Unit {
  int lanes, groups;
  int64_t shared_kilobytes;
  int64_t group_registers = 64 << 10;
};

struct Row {
  std::string_view word;  // cuda:NAME
  int units;
  Unit unit;
  int64_t shared_kilobytes;  // maximum per group
  int64_t l1_kilobytes, l2_kilobytes;
  double hertz;
  int64_t async_copy_bytes;
  int shuffle_lanes;  // from PTX 6.0 on, which LLVM writes for sm_70 and newer
  int sharing_groups = 0;
  bool arch_only = false;  // code runs on this architecture only, and can multiply blocks in shared memory (wgmma)

  constexpr std::string_view name() const { return word.substr(word.find(':') + 1); }
};

constexpr int64_t kDefaultSharedBytes = 48 << 10;
constexpr int kGroupLanesMax = 1024;     // per group, on every architecture
constexpr double kArchOnlyCudaMin = 12;  // first CUDA version whose drivers compile code for one architecture only

// In ascending order. The first row is the default for code that must run everywhere. Units of sm_80 have 164 KB of
// shared memory and those of sm_90 228 KB; both count as 200 KB, the value with which the analytic cost models were
// fitted to an H200.
constexpr Row kTable[] = {
    {"cuda:sm_53", 1, {2048, 32, 64, 32 << 10}, 48, 24, 256, 0.92e9, 0, 0},   // Jetson Nano
    {"cuda:sm_60", 56, {2048, 32, 64}, 48, 24, 4096, 1.3e9, 0, 0},            // P100
    {"cuda:sm_61", 20, {2048, 32, 96}, 48, 48, 2048, 1.7e9, 0, 0},            // GTX 1080
    {"cuda:sm_62", 2, {2048, 32, 64, 32 << 10}, 48, 24, 512, 1.3e9, 0, 0},    // Jetson TX2
    {"cuda:sm_70", 80, {2048, 32, 96}, 96, 64, 6144, 1.5e9, 0, 32},           // V100
    {"cuda:sm_72", 8, {2048, 32, 96}, 96, 64, 512, 1.37e9, 0, 32},            // Jetson Xavier
    {"cuda:sm_75", 40, {1024, 16, 64}, 64, 32, 4096, 1.59e9, 0, 32},          // T4
    {"cuda:sm_80", 108, {2048, 32, 200}, 163, 128, 40960, 1.41e9, 16, 32},    // A100
    {"cuda:sm_86", 82, {1536, 16, 100}, 99, 64, 6144, 1.7e9, 16, 32},         // RTX 3090
    {"cuda:sm_87", 16, {1536, 16, 164}, 163, 128, 4096, 1.3e9, 16, 32},       // Jetson Orin
    {"cuda:sm_89", 128, {1536, 24, 100}, 99, 64, 73728, 2.5e9, 16, 32},       // RTX 4090
    {"cuda:sm_90", 132, {2048, 32, 200}, 227, 160, 51200, 1.8e9, 16, 32, 8},  // H100
    {"cuda:sm_90a", 132, {2048, 32, 200}, 227, 160, 51200, 1.8e9, 16, 32, 8, true},
};

constexpr auto kWords = [] {
  std::array<std::string_view, std::size(kTable) + 1> words = {"cuda"};
  for (size_t i = 0; i < std::size(kTable); ++i) words[i + 1] = kTable[i].word;
  return words;
}();

Target TargetOfRow(const Row& row) {
  Target target;
  target.kind = Kind::kCuda;
  target.cpu = row.name();
  target.hierarchy = {.units = row.units,
                      .max_lanes = 256,
                      .lane_width = 32,
                      .unit_lanes = row.unit.lanes,
                      .unit_groups = row.unit.groups,
                      .shuffle_lanes = row.shuffle_lanes,
                      .sharing_groups = row.sharing_groups};
  target.memory.registers_bytes = 1 << 10;
  target.memory.group_registers = row.unit.group_registers;
  target.memory.local_bytes = target.memory.registers_bytes;
  target.memory.shared_bytes = row.shared_kilobytes << 10;
  target.memory.unit_shared_bytes = row.unit.shared_kilobytes << 10;
  target.memory.default_shared_bytes = kDefaultSharedBytes;
  target.memory.shared_gain = 4;
  target.memory.async_copy_bytes = row.async_copy_bytes;
  target.memory.l1_bytes = row.l1_kilobytes << 10;
  target.memory.l2_bytes = row.l2_kilobytes << 10;
  target.memory.l3_bytes = 0;
  target.vector_bits = 128;
  target.vector_registers = 64;
  target.core.hertz = row.hertz;
  // Those of sm_80, like the asynchronous copies.
  if (row.async_copy_bytes > 0) target.tensor_instructions = {TensorInstruction::kMmaF16, TensorInstruction::kMmaBf16};
  if (row.arch_only) {
    target.tensor_instructions.insert(target.tensor_instructions.end(),
                                      {TensorInstruction::kWgmmaF16, TensorInstruction::kWgmmaBf16});
  }
  return target;
}

// f32 factors may be rounded to ten fraction bits (TF32). The user must request this loss of precision.
constexpr std::string_view kTf32 = "-tf32";

absl::Status AllowTf32(Target& target) {
  if (target.tensor_instructions.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("target: {} has no TF32 instructions; architectures from sm_80 on have them", target.cpu));
  }
  std::vector<TensorInstruction>& instructions = target.tensor_instructions;
  const bool blocks = std::ranges::find(instructions, TensorInstruction::kWgmmaF16) != instructions.end();
  instructions.insert(instructions.begin(), TensorInstruction::kMmaTf32);
  if (blocks) {
    instructions.insert(instructions.end(), {TensorInstruction::kWgmmaTf32, TensorInstruction::kWgmmaTf32Registers});
  }
  return absl::OkStatus();
}

// A launch may begin before the preceding one ends. The user must request this, because its gain is not measured yet.
constexpr std::string_view kOverlap = "-overlap";

absl::Status AllowOverlappingLaunches(Target& target) {
  target.hierarchy.overlapping_launches = target.hierarchy.sharing_groups > 0;  // both came with sm_90
  if (target.hierarchy.overlapping_launches) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("target: {} cannot overlap launches; architectures from sm_90 on can", target.cpu));
}

// Returns true if the option, which has no value, is present.
absl::StatusOr<bool> Has(const TargetText& text, std::string_view name) {
  const TargetText::Option* const option = text.Find(name);
  if (option == nullptr || option->value.empty()) return option != nullptr;
  return absl::InvalidArgumentError(fmt::format("target: {} takes no value, but has '{}'", name, option->value));
}

Target Typical() { return TargetOfRow(kTable[0]); }

std::vector<Number> Numbers(Target& target) {
  Hierarchy& hierarchy = target.hierarchy;
  Memory& memory = target.memory;
  return {{"-units", &hierarchy.units, nullptr},      {"-lanes", &hierarchy.max_lanes, nullptr},
          {"-shared", nullptr, &memory.shared_bytes}, {"-registers", nullptr, &memory.registers_bytes},
          {"-l1", nullptr, &memory.l1_bytes},         {"-l2", nullptr, &memory.l2_bytes}};
}

absl::StatusOr<const Row*> FindArchitecture(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : kTable) {
    if (row.name() == name) return &row;
    names.push_back(row.name());
  }
  return absl::InvalidArgumentError(
      fmt::format("target: no architecture '{}' for cuda; there are {}", name, fmt::join(names, " ")));
}

// The architecture and size of the selected device. A device newer than the table gets the newest architecture that
// runs on it; code for one architecture only is chosen for exactly that architecture, if the driver knows it.
absl::StatusOr<Target> TargetOfCudaDevice(const std::string& selector) {
  HONE_ASSIGN_OR_RETURN(const auto found,
                        FindDevice<drivers::CudaDriver>(selector, "give its architecture, as in cuda -arch=sm_87"));
  if (!found.has_value()) return Typical();
  const drivers::cuda::DeviceInfo& info = *found;
  const auto number = [](std::string_view name) { return std::atoi(name.substr(name.find('_') + 1).data()); };
  const bool knows_arch_only = std::atof(info.driver_version.c_str()) >= kArchOnlyCudaMin;
  const Row* best = nullptr;
  for (const Row& row : kTable) {
    const bool runs = row.arch_only ? number(row.name()) == number(info.architecture) && knows_arch_only
                                    : number(row.name()) <= number(info.architecture);
    if (runs) best = &row;
  }
  if (best == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("target: the CUDA device '{}' is {}, older than {}, the oldest that Hone makes code for", info.name,
                    info.architecture, kTable[0].name()));
  }
  Target target = TargetOfRow(*best);
  target.hierarchy.units = static_cast<int>(std::max<int64_t>(1, info.compute_units));
  if (info.local_bytes > 0) target.memory.shared_bytes = std::min(target.memory.shared_bytes, info.local_bytes);
  if (info.cache_bytes > 0) target.memory.l2_bytes = info.cache_bytes;
  return target;
}

// The limits common to all architectures, and the table's values for this one.
absl::Status CheckRanges(const Target& target, const Row& row) {
  const Hierarchy& hierarchy = target.hierarchy;
  if (hierarchy.max_lanes % hierarchy.lane_width != 0 || hierarchy.max_lanes > kGroupLanesMax) {
    return absl::InvalidArgumentError(fmt::format("target: -lanes={} must be a multiple of {} up to {}",
                                                  hierarchy.max_lanes, hierarchy.lane_width, kGroupLanesMax));
  }
  const int64_t most = row.shared_kilobytes << 10;
  if (target.memory.shared_bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("target: -shared={}: a group has at most {} bytes on {}",
                                                target.memory.shared_bytes, most, row.name()));
}

// If the text names the architecture, this machine is not inspected.
absl::StatusOr<Target> Parse(const TargetText& text) {
  const TargetText::Option* const arch = text.Find("-arch");
  const TargetText::Option* const device = text.Find("-device");
  const size_t colon = text.word.find(':');
  std::string_view name;
  if (colon != std::string_view::npos) name = text.word.substr(colon + 1);
  if (arch != nullptr) name = arch->value;
  const std::string selector(device != nullptr ? device->value : "");
  Target target;
  if (name.empty()) {
    HONE_ASSIGN_OR_RETURN(target, TargetOfCudaDevice(selector));
  } else {
    HONE_ASSIGN_OR_RETURN(const Row* row, FindArchitecture(name));
    target = TargetOfRow(*row);
  }
  target.device = selector;
  HONE_ASSIGN_OR_RETURN(const bool tf32, Has(text, kTf32));
  HONE_ASSIGN_OR_RETURN(const bool overlap, Has(text, kOverlap));
  if (tf32) HONE_RETURN_IF_ERROR(AllowTf32(target));
  if (overlap) HONE_RETURN_IF_ERROR(AllowOverlappingLaunches(target));
  HONE_RETURN_IF_ERROR(ParseNumbers(text, {"-arch=", "-device=", std::string(kTf32), std::string(kOverlap)}, target));
  HONE_ASSIGN_OR_RETURN(const Row* row, FindArchitecture(target.cpu));
  HONE_RETURN_IF_ERROR(CheckRanges(target, *row));
  target.memory.local_bytes = target.memory.registers_bytes;
  target.memory.default_shared_bytes = std::min(target.memory.shared_bytes, kDefaultSharedBytes);
  target.vector_registers =
      static_cast<int>(std::max<int64_t>(1, target.memory.registers_bytes * 8 / target.vector_bits));
  return target;
}

std::string PrintCuda(const Target& target) {
  std::string text = fmt::format("cuda -arch={}", target.cpu);
  if (!target.device.empty()) text += fmt::format(" -device={}", target.device);
  if (AllowsTf32(target)) text += fmt::format(" {}", kTf32);
  if (target.hierarchy.overlapping_launches) text += fmt::format(" {}", kOverlap);
  return text;
}

std::string DeviceOfCuda(const Target& target) { return target.device.empty() ? "cuda" : "cuda:" + target.device; }

}  // namespace

constinit const KindEntry kCudaEntry = {kGridFacts, kWords,  Typical,      Parse,
                                        PrintCuda,  Numbers, DeviceOfCuda, RooflineOfDevice<drivers::CudaDriver>};

}  // namespace hone::target
