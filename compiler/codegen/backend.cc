// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/backend.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "compiler/codegen/opencl/emit.h"
#include "compiler/target/cpu.h"

namespace hone::codegen {
namespace {

CodeKind CodeOfCpu(const target::Target& target) { return EntryOf(target.arch).code; }

absl::StatusOr<std::string> EmitSource(std::span<const ir::Func> funcs, const target::Target&, Effort effort,
                                       Output output) {
  if (output != Output::kObject) {
    return absl::InvalidArgumentError(
        "code for OpenCL is compiled by the device's driver; only its source can be written here");
  }
  return EmitOpenCl(funcs, effort == Effort::kKernel);
}

// Each source stands alone. The device builds each candidate by itself, so that one that fails to build harms no other.
absl::StatusOr<Artifact> Concatenate(std::span<const std::string> objects) {
  Artifact artifact;
  for (const std::string& object : objects) {
    artifact.ranges.push_back({static_cast<int64_t>(artifact.code.size()), static_cast<int64_t>(object.size())});
    artifact.code += object;
  }
  return artifact;
}

std::optional<Assembled> NoAssembler(const std::string&, const target::Target&) { return std::nullopt; }

constexpr Backend kCpu = {EmitCpuCode, LinkShared, CodeOfCpu, EnabledFeatures, NoAssembler};
constexpr Backend kOpenCl = {EmitSource, Concatenate, [](const target::Target&) { return CodeKind::kOpenCl; },
                             [](const target::Target&) { return std::vector<std::string>(); }, NoAssembler};
constexpr Backend kCuda = {EmitPtx, Concatenate, [](const target::Target&) { return CodeKind::kPtx; },
                           [](const target::Target&) { return std::vector<std::string>(); }, AssemblePtx};

const Backend& BackendOf(target::Kind kind) {
  switch (kind) {
    case target::Kind::kCpu:
      return kCpu;
    case target::Kind::kOpenCl:
      return kOpenCl;
    case target::Kind::kCuda:
      return kCuda;
  }
  HONE_CHECK(false);
  return kCpu;
}

}  // namespace

absl::StatusOr<std::string> Emit(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                 Output output) {
  return BackendOf(target.kind).emit(funcs, target, effort, output);
}

absl::StatusOr<Artifact> Link(std::span<const std::string> objects, const target::Target& target) {
  return BackendOf(target.kind).link(objects);
}

CodeKind CodeKindOf(const target::Target& target) { return BackendOf(target.kind).code_kind(target); }

std::vector<std::string> RequiredFeatures(const target::Target& target) {
  return BackendOf(target.kind).required_features(target);
}

std::optional<Assembled> Assemble(const std::string& object, const target::Target& target) {
  return BackendOf(target.kind).assemble(object, target);
}

std::string WithMachineCode(std::string code, std::span<const std::string> machine_codes) {
  if (machine_codes.empty()) return code;
  code += '\0';
  for (const std::string& machine_code : machine_codes) {
    for (int byte = 0; byte < 8; ++byte) code += static_cast<char>(machine_code.size() >> (8 * byte));
    code += machine_code;
  }
  return code;
}

std::string Drawback(const Resources& resources, const target::Target& target) {
  if (resources.shared_bytes > target.memory.shared_bytes) {
    return fmt::format("a group needs {} bytes of shared memory; the target has {}", resources.shared_bytes,
                       target.memory.shared_bytes);
  }
  if (resources.spill_bytes > 0) {
    return fmt::format("a lane's {} registers are too few: {} bytes are spilled to memory", resources.registers,
                       resources.spill_bytes);
  }
  return "";
}

}  // namespace hone::codegen
