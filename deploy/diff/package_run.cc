// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/package_run.h"

#include <algorithm>
#include <utility>

#include "base/kernel_interface.h"
#include "base/status.h"
#include "fmt/format.h"

namespace hone::diff {
namespace {

absl::Status FileError(const std::string& path, const runtime::Fault& fault) {
  return fault.ok() ? absl::OkStatus() : absl::DataLossError(fmt::format("{}: {}", path, fault.text));
}

}  // namespace

absl::StatusOr<ProgramTables> ProgramTables::Read(const std::string& path, int64_t program) {
  ProgramTables tables;
  HONE_RETURN_IF_ERROR(FileError(path, runtime::Mapping::File(path, &tables.file_)));
  HONE_RETURN_IF_ERROR(
      FileError(path, runtime::ViewPackage(tables.file_.bytes(), runtime::ConstantsCheck::kTrust, &tables.package_)));
  if (program < 0 || program >= static_cast<int64_t>(tables.package_.programs.size())) {
    return absl::NotFoundError(fmt::format("{} has no program number {}", path, program));
  }
  tables.number_ = static_cast<size_t>(program);
  const runtime::ProgramView& view = tables.program();
  for (size_t call = 0; call < view.calls.size(); ++call) {
    const std::span<const uint32_t> arguments = view.Arguments(view.calls[call]);
    for (const uint32_t a : view.Kernel(view.calls[call]).Of(BufferRole::kOutput)) {
      tables.writers_[arguments[a]].push_back(call);
    }
  }
  for (const package::BorderEntry& border : view.borders) tables.sources_[border.target].push_back(border.source);
  for (const package::CopyEntry& copy : view.copies) tables.sources_[copy.target].push_back(copy.source);
  for (const package::ActionEntry& action : view.actions) {
    const bool copies = action.op == package::ActionOp::kCopy || action.op == package::ActionOp::kCopyRow;
    if (copies || action.op == package::ActionOp::kSwap) tables.sources_[action.a].push_back(action.b);
    if (action.op == package::ActionOp::kSwap) tables.sources_[action.b].push_back(action.a);
  }
  return tables;
}

std::vector<ProgramTables::Input> ProgramTables::Inputs() const {
  std::vector<Input> inputs;
  for (const uint32_t id : program().inputs) {
    const package::TensorEntry& tensor = program().tensors[id];
    const std::span<const int64_t> shape = program().Shape(tensor);
    Input& input = inputs.emplace_back(std::string(program().Text(tensor.name)), tensor.dtype,
                                       std::vector<int64_t>(shape.begin(), shape.end()));
    const auto copy = std::ranges::find(program().defaults, id, &package::CopyEntry::target);
    if (copy == program().defaults.end()) continue;
    const package::TensorEntry& constant = program().tensors[copy->source];
    input.default_value = package_.constants.subspan(constant.offset, constant.bytes);
  }
  return inputs;
}

absl::StatusOr<std::vector<package::InputRange>> ProgramTables::InputRanges() const {
  HONE_ASSIGN_OR_RETURN(package::PackageMetadata metadata, package::ParseMetadata(package_.metadata));
  return std::move(metadata.input_ranges);
}

KernelCall ProgramTables::Call(size_t call) const {
  KernelCall result = {.call = call, .symbol = program().Kernel(program().calls[call]).name, .nodes = {}};
  for (const package::CallNodeEntry& entry : program().NodesOf(call)) {
    const package::NodeEntry& node = program().nodes[entry.node];
    result.nodes.push_back({std::string(program().Text(node.name)), std::string(program().Text(node.op))});
  }
  return result;
}

std::vector<ProgramTables::Held> ProgramTables::ValuesOf(size_t tensor) const {
  std::vector<Held> values;
  for (const package::ValueEntry& value : program().ValuesOf(tensor)) {
    const auto axes = program().value_axes.subspan(value.axes, value.rank);
    values.push_back({std::string(program().Text(value.name)), {axes.begin(), axes.end()}});
  }
  return values;
}

std::vector<size_t> ProgramTables::WritersOfOutput(const std::string& name) const {
  for (const uint32_t output : program().outputs) {
    if (program().Text(program().tensors[output].name) == name) return WritersOf(output);
  }
  return {};
}

std::vector<size_t> ProgramTables::WritersOf(size_t tensor) const {
  std::set<size_t> calls, seen;
  std::vector<size_t> pending = {tensor};
  while (!pending.empty()) {
    const size_t at = pending.back();
    pending.pop_back();
    if (!seen.insert(at).second) continue;
    if (const auto writers = writers_.find(at); writers != writers_.end()) {
      calls.insert(writers->second.begin(), writers->second.end());
    }
    if (const auto sources = sources_.find(at); sources != sources_.end()) {
      pending.insert(pending.end(), sources->second.begin(), sources->second.end());
    }
  }
  return {calls.rbegin(), calls.rend()};
}

std::vector<size_t> ProgramTables::CallsBehind(size_t call, const std::set<size_t>& known) const {
  std::set<size_t> seen = {call};
  std::vector<size_t> result, pending = {call};
  while (!pending.empty()) {
    const size_t at = pending.back();
    pending.pop_back();
    result.push_back(at);
    const std::span<const uint32_t> arguments = program().Arguments(program().calls[at]);
    for (const uint32_t a : program().Kernel(program().calls[at]).Of(BufferRole::kInput)) {
      const uint32_t tensor = arguments[a];
      if (tensor == package::kNoTensor) continue;
      // A copy in another memory is known if its source is.
      const auto sources = sources_.find(tensor);
      const bool copied = sources != sources_.end() && sources->second.size() == 1;
      if (known.contains(copied ? sources->second.front() : tensor)) continue;
      for (const size_t writer : WritersOf(tensor)) {
        if (seen.insert(writer).second) pending.push_back(writer);
      }
    }
  }
  return result;
}

}  // namespace hone::diff
