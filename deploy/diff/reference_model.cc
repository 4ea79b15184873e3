// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/reference_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/target/host.h"
#include "deploy/package/compile_model.h"
#include "fmt/format.h"

namespace hone::diff {
namespace {

std::span<uint8_t> ElementsOf(const DLTensor& tensor) {
  auto bytes = static_cast<size_t>((tensor.dtype.bits + 7) / 8);
  for (int32_t d = 0; d < tensor.ndim; ++d) bytes *= static_cast<size_t>(tensor.shape[d]);
  return {static_cast<uint8_t*>(tensor.data), bytes};
}

}  // namespace

absl::StatusOr<ReferenceModel> ReferenceModel::Make(const std::string& onnx_path, const Options& options) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, graph::ImportOnnx(onnx_path, options.import));
  graph.target = target::HostCpu();
  HONE_RETURN_IF_ERROR(graph::SplitRecurrences(graph));  // a node of many steps takes minutes to compile
  HONE_ASSIGN_OR_RETURN(graph::Plan plan, graph::BuildPlan(graph, graph::Fusion::kNone));
  ReferenceModel reference(std::move(plan));
  reference.values_of_.resize(reference.plan_.tensors.size());
  for (size_t v = 0; v < reference.plan_.values.size(); ++v) {
    reference.values_of_[reference.plan_.Root(reference.plan_.values[v].tensor)].push_back(v);
  }
  if (!options.interpret) HONE_RETURN_IF_ERROR(reference.Compile(options));
  return reference;
}

absl::Status ReferenceModel::Compile(const Options& options) {
  HONE_ASSIGN_OR_RETURN(folder_, TemporaryFolder::Create());
  const std::string path = *folder_ / "reference.hone";
  const package::KernelOptions kernels = {
      .target = target::HostCpu(), .threads = options.threads, .naive = true, .progress = options.progress};
  HONE_RETURN_IF_ERROR(package::CompilePlan(plan_, "reference", kernels, path).status());
  HONE_ASSIGN_OR_RETURN(
      package_, run::LoadedPackage::Load(path, {.allows_onnx_runtime = options.allows_onnx_runtime, .device = "cpu"}));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<run::ArrayView>> ReferenceModel::InOrder(std::span<const run::ArrayView> inputs) const {
  std::vector<run::ArrayView> ordered;
  for (const graph::TensorId id : plan_.inputs) {
    const graph::PlanTensor& tensor = plan_.tensors[id];
    const auto found = std::ranges::find(inputs, tensor.name, &run::ArrayView::name);
    if (found == inputs.end()) {
      return absl::InvalidArgumentError(
          fmt::format("the package has no input '{}', which the model has; give the options --bind and "
                      "--defaults-as-constants as for hone compile",
                      tensor.name));
    }
    const bool fits =
        found->dtype == tensor.type.dtype && std::ranges::equal(found->shape, ir::MaxValues(tensor.type.shape));
    if (!fits) {
      return absl::InvalidArgumentError(
          fmt::format("input '{}' of the package has another type or shape than that of the model; is the package made "
                      "from this file?",
                      tensor.name));
    }
    ordered.push_back(*found);
  }
  return ordered;
}

absl::Status ReferenceModel::Run(std::span<const run::ArrayView> inputs, const Watch& watch) {
  HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> ordered, InOrder(inputs));
  return package_.has_value() ? RunCompiled(ordered, watch) : Interpret(ordered, watch);
}

absl::Status ReferenceModel::RunCompiled(const std::vector<run::ArrayView>& inputs, const Watch& watch) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    DLTensor view;
    HONE_RETURN_IF_ERROR(run::RuntimeError(hone_get_input(package_->model(), i, &view)));
    if (!inputs[i].data.empty()) std::memcpy(view.data, inputs[i].data.data(), inputs[i].data.size());
  }
  std::map<std::string, size_t> numbers;
  for (size_t v = 0; v < plan_.values.size(); ++v) numbers.emplace(plan_.values[v].name, v);
  HONE_RETURN_IF_ERROR(package_->RunWatched([&](const HoneValue& value) {
    const auto number = numbers.find(value.name);
    if (number == numbers.end()) return;
    const std::span<const int64_t> shape(value.tensor.shape, static_cast<size_t>(value.tensor.ndim));
    watch.on_value(number->second, shape, ElementsOf(value.tensor));
  }));
  HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> outputs, package_->Outputs());
  for (size_t i = 0; i < outputs.size(); ++i) watch.on_output(i, outputs[i].shape, outputs[i].data);
  return absl::OkStatus();
}

absl::Status ReferenceModel::Interpret(const std::vector<run::ArrayView>& inputs, const Watch& watch) const {
  std::vector<ir::Bytes> bytes;
  for (const run::ArrayView& input : inputs) {
    const auto* const data = reinterpret_cast<const std::byte*>(input.data.data());
    bytes.emplace_back(data, data + input.data.size());
  }
  const auto shape_of = [this](graph::TensorId id, size_t elements) {
    const ir::Shape& shape = plan_.tensors[id].type.shape;
    // A shape that the run decides has no dimensions here; its elements are in one row.
    return ir::IsFixed(shape) ? ir::Values(shape) : std::vector<int64_t>{static_cast<int64_t>(elements)};
  };
  const auto on_call = [&](size_t, graph::TensorId tensor, ir::Bytes& elements) {
    const size_t count = elements.size() / static_cast<size_t>(ir::SizeOf(plan_.tensors[tensor].type.dtype));
    for (const size_t value : values_of_[tensor]) {
      watch.on_value(value, shape_of(tensor, count), {reinterpret_cast<uint8_t*>(elements.data()), elements.size()});
    }
  };
  std::vector<ir::Shape> shapes;
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Bytes> outputs, graph::InterpretPlan(plan_, bytes, &shapes, on_call));
  for (size_t i = 0; i < outputs.size(); ++i) {
    watch.on_output(i, ir::Values(shapes[i]), {reinterpret_cast<const uint8_t*>(outputs[i].data()), outputs[i].size()});
  }
  return absl::OkStatus();
}

}  // namespace hone::diff
