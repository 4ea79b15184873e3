// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/execution.h"

#include <utility>

#include "base/status.h"
#include "compiler/graph/interpret_plan.h"
#include "fmt/format.h"
#include "tests/conformance/onnx/compare_tensors.h"

namespace hone::conformance {
namespace {

bool IsIntOrBool(const NamedTensor& input) { return !ir::IsFloat(input.value.type.dtype); }
bool IsShort(const NamedTensor& input) { return input.value.type.shape.size() <= 1; }

// Sets of inputs to bind, in the order of attempts: as few as possible first.
std::vector<graph::ImportOptions> BindingAttempts(const ConformanceCase& content) {
  using Wanted = bool (*)(size_t, const NamedTensor&);
  constexpr Wanted kAttempts[] = {
      [](size_t, const NamedTensor&) { return false; },
      [](size_t i, const NamedTensor& input) { return i > 0 && IsIntOrBool(input) && IsShort(input); },
      [](size_t, const NamedTensor& input) { return IsIntOrBool(input) && IsShort(input); },
      [](size_t i, const NamedTensor& input) { return i > 0 && IsShort(input); },
      [](size_t, const NamedTensor& input) { return IsShort(input); },
  };
  std::vector<graph::ImportOptions> attempts;
  for (const Wanted wanted : kAttempts) {
    graph::ImportOptions options;
    for (const std::string& name : content.empty_sequences) options.shapes[name] = {};
    for (size_t i = 0; i < content.inputs.size(); ++i) {
      const NamedTensor& input = content.inputs[i];
      if (input.is_small) continue;  // the model states its shape
      const std::vector<int64_t> shape = ir::Values(input.value.type.shape);
      options.shapes[input.name].assign(shape.begin(), shape.end());
      if (wanted(i, input)) options.bound_inputs[input.name] = input.value;
    }
    if (attempts.empty() || attempts.back().bound_inputs.size() != options.bound_inputs.size()) {
      attempts.push_back(std::move(options));
    }
  }
  return attempts;
}

}  // namespace

absl::StatusOr<ImportedCase> ImportCase(ConformanceCase content) {
  absl::Status last_error;  // of the attempt with the most inputs bound, which names the real obstacle
  for (graph::ImportOptions& options : BindingAttempts(content)) {
    auto plan = graph::BuildPlan(content.model_path, options, {});
    if (plan.ok()) return ImportedCase{std::move(content), std::move(options), *std::move(plan)};
    last_error = plan.status();
  }
  std::string reason(last_error.message());
  const std::string path = content.model_path + ": ";
  if (reason.starts_with(path)) reason.erase(0, path.size());  // the case's name contains the path already
  return absl::Status(last_error.code(), reason);
}

const graph::Constant* ImportedCase::FindInput(const std::string& name) const {
  for (const NamedTensor& input : content.inputs) {
    if (input.name == name) return &input.value;
  }
  return nullptr;
}

absl::StatusOr<std::vector<graph::Constant>> Interpret(const ImportedCase& imported) {
  const graph::Plan& plan = imported.plan;
  std::vector<ir::Bytes> inputs;
  for (const graph::TensorId id : plan.inputs) {
    const std::string& name = plan.tensors[id].name;
    const graph::Constant* value = imported.FindInput(name);
    if (value == nullptr) return absl::InvalidArgumentError(fmt::format("the case gives no input '{}'", name));
    inputs.push_back(*value->data);
  }
  std::vector<ir::Shape> shapes;
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Bytes> bytes, graph::InterpretPlan(plan, inputs, &shapes));
  std::vector<graph::Constant> outputs;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const ir::DType dtype = plan.tensors[plan.outputs[i]].type.dtype;
    outputs.push_back({{dtype, std::move(shapes[i])}, std::make_shared<const ir::Bytes>(std::move(bytes[i]))});
  }
  return outputs;
}

absl::Status RunCase(const std::string& data, const std::string& name, const Execution& execution, bool rounded) {
  HONE_ASSIGN_OR_RETURN(ConformanceCase content, LoadCase(data, name));
  HONE_ASSIGN_OR_RETURN(const ImportedCase imported, ImportCase(std::move(content)));
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Constant> outputs, execution(imported));
  const std::vector<NamedTensor>& expected = imported.content.expected;
  if (outputs.size() < expected.size()) {
    return absl::DataLossError(fmt::format("wrong output: {} of {} outputs", outputs.size(), expected.size()));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const absl::Status status = CompareTensors(outputs[i], expected[i].value, rounded);
    if (!status.ok()) return Annotate(status, fmt::format("output '{}'", expected[i].name));
  }
  return absl::OkStatus();
}

}  // namespace hone::conformance
