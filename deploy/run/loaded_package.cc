// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/loaded_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "base/random.h"
#include "base/status.h"
#include "deploy/run/random_values.h"
#include "deploy/runtime/dtype.h"

namespace hone::run {
namespace {

HoneLoadOptions OptionsOf(const LoadedPackage::Options& options) {
  return {sizeof(HoneLoadOptions), options.threads, options.allows_onnx_runtime ? HONE_LOAD_ALLOW_ONNX_RUNTIME : 0,
          options.device.empty() ? nullptr : options.device.c_str()};
}

}  // namespace

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

absl::StatusOr<LoadedPackage> LoadedPackage::Load(const std::string& path, const Options& options) {
  HoneModel* model = nullptr;
  const HoneLoadOptions given = OptionsOf(options);
  const HoneStatus loaded = hone_load(path.c_str(), &given, &model);
  if (loaded == HONE_IO_ERROR) return RuntimeError(loaded);  // its text contains the path
  if (loaded != HONE_OK) return Annotate(RuntimeError(loaded), path);
  return Adopt(model);
}

absl::StatusOr<LoadedPackage> LoadedPackage::LoadFile(int file, const Options& options) {
  HoneModel* model = nullptr;
  const HoneLoadOptions given = OptionsOf(options);
  HONE_RETURN_IF_ERROR(RuntimeError(hone_load_file(file, nullptr, &given, &model)));
  return Adopt(model);
}

absl::StatusOr<LoadedPackage> LoadedPackage::Adopt(HoneModel* model) {
  LoadedPackage package;
  package.model_.reset(model);
  for (size_t i = 0; i < hone_input_count(model); ++i) {
    HONE_RETURN_IF_ERROR(RuntimeError(hone_input(model, i, &package.inputs_.emplace_back())));
  }
  for (size_t i = 0; i < hone_output_count(model); ++i) {
    HONE_RETURN_IF_ERROR(RuntimeError(hone_output(model, i, &package.outputs_.emplace_back())));
  }
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

absl::StatusOr<std::vector<KernelWork>> LoadedPackage::Work() const {
  HONE_ASSIGN_OR_RETURN(const package::PackageMetadata metadata, Metadata());
  const package::ProgramMetadata program = RunningProgram(metadata);
  if (program.varies) {
    return absl::FailedPreconditionError("the values of a run decide which kernels run, and how often");
  }
  std::map<std::string, KernelWork> by_symbol;
  for (size_t i = 0; i < hone_call_count(model()); ++i) ++by_symbol[hone_call_symbol(model(), i)].calls;
  for (const package::KernelMetadata& kernel : program.kernels) {
    const auto found = by_symbol.find(kernel.symbol);
    if (found == by_symbol.end()) continue;
    found->second.flops = kernel.flops;
    found->second.bytes = kernel.bytes;
  }
  std::vector<KernelWork> work;
  for (const auto& [symbol, kernel] : by_symbol) {
    if (!(kernel.bytes > 0)) {
      return absl::FailedPreconditionError(
          fmt::format("the package does not state the work of its kernel '{}', which has open sizes or is computed by "
                      "ONNX Runtime",
                      symbol));
    }
    work.push_back(kernel);
  }
  return work;
}

std::vector<ModelNode> LoadedPackage::NodesOf(size_t call) const {
  std::vector<ModelNode> nodes;
  for (size_t i = 0; i < hone_call_node_count(model(), call); ++i) {
    nodes.push_back({hone_call_node(model(), call, i), hone_call_node_operator(model(), call, i)});
  }
  return nodes;
}

absl::Status LoadedPackage::Resize(const std::vector<NamedShape>& shapes) {
  for (const NamedShape& shape : shapes) {
    const auto port = std::ranges::find(inputs_, shape.name, &HonePort::name);
    if (port == inputs_.end()) return absl::NotFoundError(fmt::format("the model has no input '{}'", shape.name));
    const auto index = static_cast<size_t>(port - inputs_.begin());
    const auto rank = static_cast<int32_t>(shape.extents.size());
    HONE_RETURN_IF_ERROR(RuntimeError(hone_resize(model(), index, shape.extents.data(), rank)));
    HONE_RETURN_IF_ERROR(RuntimeError(hone_input(model(), index, &*port)));
  }
  return absl::OkStatus();
}

absl::Status LoadedPackage::FillInputs(uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(const package::PackageMetadata metadata, Metadata());
  std::vector<RandomInput> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (hone_input_has_default(model(), i) != 0) continue;
    DLTensor view;
    HONE_RETURN_IF_ERROR(RuntimeError(hone_get_input(model(), i, &view)));
    inputs.push_back({inputs_[i].name,
                      package::FindDType(inputs_[i].dtype)->dtype,
                      {static_cast<uint8_t*>(view.data), static_cast<size_t>(inputs_[i].bytes)}});
  }
  FillRandomInputs(inputs, metadata.input_ranges, seed);
  return absl::OkStatus();
}

absl::Status LoadedPackage::Prepare() { return RuntimeError(hone_prepare(model())); }

absl::Status LoadedPackage::Run() { return RuntimeError(hone_run(model())); }

absl::Status LoadedPackage::RunWatched(const std::function<void(const HoneValue& value)>& watch) {
  auto* const context = const_cast<void*>(static_cast<const void*>(&watch));
  return RuntimeError(hone_run_watched(
      model(),
      [](void* given, const HoneValue* value) {
        (*static_cast<const std::function<void(const HoneValue&)>*>(given))(*value);
      },
      context));
}

absl::StatusOr<std::vector<ArrayView>> LoadedPackage::Outputs() const {
  std::vector<ArrayView> arrays;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HonePort port;  // again, because the run decides the extents of open dimensions
    HONE_RETURN_IF_ERROR(RuntimeError(hone_output(model(), i, &port)));
    DLTensor view;
    HONE_RETURN_IF_ERROR(RuntimeError(hone_get_output(model(), i, &view)));
    arrays.push_back({port.name,
                      package::FindDType(port.dtype)->dtype,
                      {port.shape, static_cast<size_t>(port.ndim)},
                      {static_cast<const uint8_t*>(view.data), static_cast<size_t>(port.bytes)}});
  }
  return arrays;
}

}  // namespace hone::run
