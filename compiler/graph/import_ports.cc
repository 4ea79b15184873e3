// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_ports.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/import_small.h"
#include "fmt/format.h"

namespace hone::graph {

ValueId ImportPorts::Named(const std::string& name, TensorType type, TensorData data) {
  const ValueId id = AddValue(at_.graph, name, std::move(type), std::move(data));
  at_.graph.values[id].name = unique_(name);
  return id;
}

absl::StatusOr<DimRanges> ImportPorts::AddInputs(const std::set<std::string>& defaulted, Scope& scope) {
  std::vector<RawInput> inputs;  // without those that are constants
  for (const RawInput& input : graph_.inputs) {
    if (!scope.values.contains(input.name)) inputs.push_back(input);
  }
  HONE_ASSIGN_OR_RETURN(DimRanges symbols, BindSymbols(inputs, options_));
  for (const RawInput& input : inputs) {
    absl::StatusOr<ValueId> id = input.container != RawInput::Container::kNone ? AddContainer(input, symbols)
                                 : defaulted.contains(input.name)              ? AddDefaulted(input)
                                                                               : AddInput(input, symbols);
    if (!id.ok()) id = log_.AddInputProblem(id.status(), input, symbols);
    HONE_RETURN_IF_ERROR(Define(input.name, std::move(id), scope));
  }
  return symbols;
}

absl::StatusOr<ValueId> ImportPorts::AddInput(const RawInput& input, const DimRanges& symbols) {
  HONE_ASSIGN_OR_RETURN(TensorType type, BindInputType(input, symbols, options_));
  DeclareSizes(at_.graph, type.shape);
  if (input.small != nullptr) return AddSmallInput(input, type.shape);
  HONE_ASSIGN_OR_RETURN(TensorData value, BindInputValue(input, type, options_));
  const bool is_input = value == nullptr;
  const ValueId id = Named(input.name, std::move(type), std::move(value));
  if (is_input) at_.graph.inputs.push_back(id);
  return id;
}

absl::StatusOr<ValueId> ImportPorts::AddContainer(const RawInput& input, const DimRanges& symbols) {
  HONE_ASSIGN_OR_RETURN(const std::vector<RawInput> tensors, ContentOf(input, options_));
  Sequence sequence;
  for (const RawInput& tensor : tensors) {
    HONE_ASSIGN_OR_RETURN(sequence.elements.emplace_back(), AddInput(tensor, symbols));
  }
  return input.IsSequence() ? sequences_.Add(std::move(sequence)) : sequence.elements.front();
}

absl::StatusOr<ValueId> ImportPorts::AddSmallInput(const RawInput& input, const ir::Shape& shape) {
  const std::string what = fmt::format("input '{}'", input.name);
  if (options_.bound_inputs.contains(input.name) || options_.bound_texts.contains(input.name)) {
    return absl::UnimplementedError(
        fmt::format("{} is of type {}; its value cannot be fixed with --bind", what, input.small->name));
  }
  absl::StatusOr<TensorType> port = PortTypeOf(*input.small, shape);
  if (!port.ok()) return Annotate(port.status(), what);
  const ValueId bytes = Named(input.name, *std::move(port), nullptr);
  at_.graph.inputs.push_back(bytes);
  return UnpackInput(at_, *input.small, bytes, shape);
}

// An input whose default decides a shape becomes a constant when that shape is needed; see ImportGraph::FoldValue.
absl::StatusOr<ValueId> ImportPorts::AddDefaulted(const RawInput& input) {
  const auto tensor = std::ranges::find(graph_.initializers, input.name, &RawInitializer::name);
  const ValueId id = Named(input.name, tensor->constant->type, nullptr);
  const TensorData data = tensor->constant->data;
  at_.graph.inputs.push_back(id);
  at_.graph.defaults[id] = data;
  at_.late[id] = tensor->later.read ? tensor->later.read : DeferredRead([data] { return data; });
  return id;
}

void ImportPorts::AddOutputs(const Scope& scope) {
  std::set<std::string> seen;
  for (const std::string& name : graph_.outputs) log_.AddProblem(AddOutput(name, scope, seen));
}

absl::Status ImportPorts::AddOutput(const std::string& name, const Scope& scope, std::set<std::string>& seen) {
  HONE_ASSIGN_OR_RETURN(const ValueId id, scope.Find(name));
  if (!Sequences::Is(id)) return AddTensorOutput(name, id, seen);
  const Sequence& sequence = sequences_.At(id);
  if (sequence.is_none || sequence.stacked != kAbsent) {
    return absl::UnimplementedError(
        fmt::format("output '{}' is {}, and an output must have a known number of tensors", name,
                    sequence.is_none ? "an optional value without content" : "a sequence whose length a run decides"));
  }
  for (size_t i = 0; i < sequence.elements.size(); ++i) {
    HONE_RETURN_IF_ERROR(AddTensorOutput(fmt::format("{}.{}", name, i), sequence.elements[i], seen));
  }
  return absl::OkStatus();
}

absl::Status ImportPorts::AddTensorOutput(const std::string& name, ValueId id, std::set<std::string>& seen) {
  if (id == kAbsent) return absl::InvalidArgumentError(fmt::format("output '{}' is not defined", name));
  if (!seen.insert(name).second) {
    return absl::InvalidArgumentError(
        fmt::format("the model lists output '{}' twice; remove one entry, or give it a second name with an "
                    "Identity node",
                    name));
  }
  ValueId output = id;
  if (const auto small = at_.small.find(id); small != at_.small.end()) {
    absl::StatusOr<ValueId> packed = PackOutput(at_, *small->second, id);
    if (!packed.ok()) return Annotate(packed.status(), fmt::format("output '{}'", name));
    output = *packed;
    at_.graph.values[output].name = unique_(name);
  }
  at_.graph.outputs.push_back(output);
  at_.graph.output_names.push_back(name);
  return absl::OkStatus();
}

}  // namespace hone::graph
