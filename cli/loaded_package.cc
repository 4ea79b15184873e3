// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/random.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/random_values.h"
#include "cli/shape_text.h"
#include "deploy/runtime/dtype.h"

namespace hone::cli {

absl::Status RuntimeError(HoneStatus status) {
  const std::string text = hone_error();
  switch (status) {
    case HONE_OK:
      return absl::OkStatus();
    case HONE_INVALID_ARGUMENT:
      return absl::InvalidArgumentError(text);
    case HONE_BAD_PACKAGE:
      return absl::DataLossError(text);
    case HONE_INCOMPATIBLE:
      return absl::FailedPreconditionError(text);
    case HONE_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(text);
    case HONE_IO_ERROR:
      return absl::NotFoundError(text);
  }
  return absl::UnknownError(text);
}

absl::StatusOr<LoadedPackage> LoadedPackage::Load(const std::string& path, int threads, const std::string& fallback) {
  const HoneLoadOptions options = {sizeof(HoneLoadOptions), threads,
                                   fallback.empty() ? 0 : HONE_LOAD_ALLOW_ONNX_RUNTIME};
  HoneModel* model = nullptr;
  const HoneStatus loaded = hone_load(path.c_str(), &options, &model);
  if (loaded == HONE_IO_ERROR) return RuntimeError(loaded);  // its text contains the path
  if (loaded != HONE_OK) return Annotate(RuntimeError(loaded), path);
  LoadedPackage package;
  package.model_.reset(model);
  for (size_t i = 0; i < hone_input_count(model); ++i) {
    HONE_RETURN_IF_ERROR(RuntimeError(hone_input(model, i, &package.inputs_.emplace_back())));
  }
  for (size_t i = 0; i < hone_output_count(model); ++i) {
    HONE_RETURN_IF_ERROR(RuntimeError(hone_output(model, i, &package.outputs_.emplace_back())));
  }
  for (const std::string& program : package.PassedOver()) PrintMessage(fmt::format("hone: passed over: {}\n", program));
  return package;
}

std::vector<std::string> LoadedPackage::PassedOver() const {
  std::istringstream lines(hone_passed_over(model()));
  std::vector<std::string> programs;
  for (std::string line; std::getline(lines, line);) programs.push_back(line);
  return programs;
}

absl::StatusOr<package::PackageMetadata> LoadedPackage::Metadata() const {
  size_t bytes = 0;
  const char* text = hone_metadata(model(), &bytes);
  return package::ParseMetadata({text, bytes});
}

package::ProgramMetadata LoadedPackage::RunningProgram(const package::PackageMetadata& metadata) const {
  const size_t number = hone_program(model());
  if (number >= metadata.programs.size()) return {target(), {}};
  return metadata.programs[number];
}

std::vector<ModelNode> LoadedPackage::NodesOf(size_t call) const {
  std::vector<ModelNode> nodes;
  for (size_t i = 0; i < hone_call_node_count(model(), call); ++i) {
    nodes.push_back({hone_call_node(model(), call, i), hone_call_node_operator(model(), call, i)});
  }
  return nodes;
}

absl::Status LoadedPackage::Resize(const std::vector<std::string>& shapes) {
  for (const std::string& text : shapes) {
    HONE_ASSIGN_OR_RETURN(const NamedText named, SplitName("--shape", text, "name=1,128"));
    HONE_ASSIGN_OR_RETURN(const std::vector<graph::DimRange> ranges, ParseShape("--shape", named.value, text));
    std::vector<int64_t> extents;
    for (const graph::DimRange& range : ranges) {
      if (range.min != range.max) return UsageError(fmt::format("--shape {}: a run has numbers, not ranges", text));
      extents.push_back(range.min);
    }
    const auto port = std::ranges::find(inputs_, named.name, &HonePort::name);
    if (port == inputs_.end()) return UsageError(fmt::format("--shape: the model has no input '{}'", named.name));
    const auto index = static_cast<size_t>(port - inputs_.begin());
    HONE_RETURN_IF_ERROR(
        RuntimeError(hone_resize(model(), index, extents.data(), static_cast<int32_t>(extents.size()))));
    HONE_RETURN_IF_ERROR(RuntimeError(hone_input(model(), index, &*port)));
  }
  return absl::OkStatus();
}

absl::Status LoadedPackage::FillInputs(uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(const package::PackageMetadata metadata, Metadata());
  Random random(seed);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (hone_input_has_default(model(), i) != 0) continue;
    const package::DType dtype = package::FindDType(inputs_[i].dtype)->dtype;
    ValueRange range = DefaultRange(dtype);
    for (const package::InputRange& given : metadata.input_ranges) {
      if (given.name == inputs_[i].name) range = {given.low, given.high};
    }
    DLTensor view;
    HONE_RETURN_IF_ERROR(RuntimeError(hone_get_input(model(), i, &view)));
    FillRandom(dtype, range, random, {static_cast<uint8_t*>(view.data), static_cast<size_t>(inputs_[i].bytes)});
  }
  return absl::OkStatus();
}

absl::Status LoadedPackage::Run() { return RuntimeError(hone_run(model())); }

}  // namespace hone::cli
