// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/interpret_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/ir/elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using SizeNumbers = std::map<std::string, int64_t, std::less<>>;

class Interpreter {
 public:
  Interpreter(const Plan& plan, const PlanWatch& watch) : plan_(plan), watch_(watch), bytes_(plan.tensors.size()) {
    for (size_t i = 0; i < plan.tensors.size(); ++i) {
      if (plan.tensors[i].data != nullptr) bytes_[i] = *plan.tensors[i].data;
    }
  }

  absl::Status SetInputs(const std::vector<ir::Bytes>& inputs) {
    if (inputs.size() != plan_.inputs.size()) {
      return absl::InvalidArgumentError(
          fmt::format("the plan has {} inputs, {} were given", plan_.inputs.size(), inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const PlanTensor& tensor = plan_.tensors[plan_.inputs[i]];
      if (!ir::IsFixed(tensor.type.shape)) {
        return absl::UnimplementedError(
            fmt::format("input '{}' has open sizes, which cannot be interpreted", tensor.name));
      }
      if (static_cast<int64_t>(inputs[i].size()) != ByteSize(tensor.type)) {
        return absl::InvalidArgumentError(fmt::format("input '{}' takes {} bytes, {} were given", tensor.name,
                                                      ByteSize(tensor.type), inputs[i].size()));
      }
      BytesOf(plan_.inputs[i]) = inputs[i];
    }
    return absl::OkStatus();
  }

  absl::Status Run() {
    size_t action = 0, call = 0;
    while (call < plan_.calls.size() || action < plan_.actions.size()) {
      if (action < plan_.actions.size() && plan_.actions[action].call == static_cast<int>(call)) {
        HONE_ASSIGN_OR_RETURN(action, Do(action));
        if (jumped_) call = static_cast<size_t>(plan_.actions[action].call);
      } else {
        HONE_RETURN_IF_ERROR(Call(call++));
      }
    }
    return absl::OkStatus();
  }

  ir::Bytes& BytesOf(TensorId id) { return bytes_[static_cast<size_t>(plan_.Root(id))]; }

  ir::Shape ShapeOf(TensorId id) const {
    ir::Shape shape;
    for (const ir::Size& extent : plan_.tensors[id].type.shape) shape.push_back(ValueOf(extent));
    return shape;
  }

 private:
  int64_t ValueOf(const ir::Size& size) const {
    const std::map<std::string, ir::Size, std::less<>> numbers(sizes_.begin(), sizes_.end());
    return size.Substitute(numbers).value();
  }

  absl::Status Call(size_t number) {
    const PlanCall& call = plan_.calls[number];
    if (call.foreign >= 0) {
      return absl::UnimplementedError(fmt::format("'{}' is computed by ONNX Runtime, which the interpreter is not",
                                                  plan_.foreign[call.foreign].name));
    }
    const ir::Workload* workload = &plan_.workloads[call.workload];
    ir::Workload fixed;
    if (!workload->sizes.empty()) {
      SizeNumbers numbers;
      for (size_t i = 0; i < call.sizes.size(); ++i) numbers[workload->sizes[i].name] = ValueOf(call.sizes[i]);
      fixed = ir::WithSizes(*workload, numbers);
      workload = &fixed;
    }
    std::vector<std::span<const std::byte>> params;
    for (size_t i = 0; i < workload->params.size(); ++i) params.push_back(BytesOf(call.arguments[i]));
    HONE_ASSIGN_OR_RETURN(std::vector<ir::Bytes> results, ir::Interpret(*workload, params));
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorId id = call.arguments[workload->params.size() + i];
      BytesOf(id) = std::move(results[i]);
      if (watch_) watch_(number, plan_.Root(id), BytesOf(id));
    }
    return absl::OkStatus();
  }

  // Does an action and returns the number of the next one.
  absl::StatusOr<size_t> Do(size_t number) {
    const PlanAction& action = plan_.actions[number];
    jumped_ =
        action.kind == ActionKind::kJump || (action.kind == ActionKind::kJumpIfZero && ValueOf(action.value) == 0);
    if (jumped_) return static_cast<size_t>(action.destination);
    switch (action.kind) {
      case ActionKind::kReadSize: {
        const ir::DType dtype = plan_.tensors[action.source].type.dtype;
        HONE_RETURN_IF_ERROR(
            SetSize(action.size, static_cast<int64_t>(ir::ElementAsDouble(dtype, BytesOf(action.source).data()))));
        break;
      }
      case ActionKind::kSetSize:
        HONE_RETURN_IF_ERROR(SetSize(action.size, ValueOf(action.value)));
        break;
      case ActionKind::kCopy:
        BytesOf(action.target) = ir::Bytes(BytesOf(action.source));
        break;
      case ActionKind::kCopyRow: {
        const ir::Bytes& row = BytesOf(action.source);
        ir::Bytes& rows = BytesOf(action.target);
        rows.resize(static_cast<size_t>(ValueOf(action.value)) * row.size());
        rows.insert(rows.end(), row.begin(), row.end());
        break;
      }
      case ActionKind::kRequire:
        if (ValueOf(action.value) == 0) break;
        return absl::InvalidArgumentError(
            fmt::format("a dimension of '{}' is larger by {} than that of a tensor which "
                        "it is used with",
                        plan_.tensors[action.source].name, ValueOf(action.value)));
      case ActionKind::kSwap:
        std::swap(BytesOf(action.source), BytesOf(action.target));
        break;
      default:
        break;
    }
    return number + 1;
  }

  absl::Status SetSize(const std::string& name, int64_t value) {
    const auto size = std::ranges::find(plan_.sizes, name, &ir::OpenSize::name);
    if (value < size->min || value > size->max) {
      return absl::OutOfRangeError(
          fmt::format("size '{}' became {}, outside its range {}..{}", name, value, size->min, size->max));
    }
    sizes_[name] = value;
    return absl::OkStatus();
  }

  const Plan& plan_;
  const PlanWatch& watch_;
  std::vector<ir::Bytes> bytes_;  // per tensor without alias_of
  SizeNumbers sizes_;
  bool jumped_ = false;  // whether the last action was a jump that was taken
};

}  // namespace

absl::StatusOr<std::vector<ir::Bytes>> InterpretPlan(const Plan& plan, const std::vector<ir::Bytes>& inputs,
                                                     std::vector<ir::Shape>* shapes, const PlanWatch& watch) {
  Interpreter interpreter(plan, watch);
  HONE_RETURN_IF_ERROR(interpreter.SetInputs(inputs));
  HONE_RETURN_IF_ERROR(interpreter.Run());
  std::vector<ir::Bytes> outputs;
  for (TensorId id : plan.outputs) {
    outputs.push_back(interpreter.BytesOf(id));
    if (shapes != nullptr) shapes->push_back(interpreter.ShapeOf(id));
  }
  return outputs;
}

}  // namespace hone::graph
