// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/diff_model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/target/target.h"
#include "deploy/diff/error_bounds.h"
#include "fmt/format.h"

namespace hone::diff {
namespace {

// A value of the file in a tensor that the package has kept.
struct Held {
  size_t kept;                // index in KeptRun::tensors
  std::vector<int64_t> axes;  // as in ProgramTables::Held
};

class Comparer {
 public:
  Comparer(ReferenceModel& reference, const PackageRun& run)
      : reference_(reference), plan_(reference.plan()), run_(run) {
    for (size_t k = 0; k < run.kept.tensors.size(); ++k) {
      for (ProgramTables::Held& value : run.tables.ValuesOf(run.kept.tensors[k].tensor)) {
        held_[value.name].push_back({k, std::move(value.axes)});
      }
    }
    for (const graph::PlanValue& value : plan_.values) {
      const auto held = held_.find(value.name);
      if (held == held_.end()) continue;
      known_.insert(plan_.Root(value.tensor));
      for (const Held& place : held->second) known_tensors_.insert(run.kept.tensors[place.kept].tensor);
    }
    const absl::StatusOr<target::Target> target = target::ParseTarget(run.tables.target());
    bounds_ = ErrorBounds(plan_, known_, target.ok() && target::AllowsTf32(*target));
    FindMakers();
  }

  absl::StatusOr<ModelDifference> Run() {
    HONE_RETURN_IF_ERROR(CheckRun());
    std::vector<run::ArrayView> inputs;
    for (const run::KeptPort& input : run_.kept.inputs) {
      inputs.push_back({input.name, input.array.dtype, input.array.shape, input.array.data});
    }
    const ReferenceModel::Watch add_totals = {
        .on_value = [this](size_t value, std::span<const int64_t> shape,
                           std::span<uint8_t> elements) { AddTotals(value, shape, elements); },
        .on_output =
            [this](size_t output, std::span<const int64_t>, std::span<const uint8_t> elements) {
              output_totals_[output] = CompareOutput(output, elements, {}).RelativeError();
            }};
    const ReferenceModel::Watch judge = {
        .on_value = [this](size_t value, std::span<const int64_t> shape,
                           std::span<uint8_t> elements) { Judge(value, shape, elements); },
        .on_output = [this](size_t output, std::span<const int64_t> shape,
                            std::span<const uint8_t> elements) { JudgeOutput(output, shape, elements); }};
    HONE_RETURN_IF_ERROR(reference_.Run(inputs, add_totals));
    HONE_RETURN_IF_ERROR(reference_.Run(inputs, judge));
    Count();
    return std::move(result_);
  }

 private:
  // Finds the outputs of the package. A run elsewhere may say anything.
  absl::Status CheckRun() {
    for (const run::KeptTensor& kept : run_.kept.tensors) {
      if (kept.call < run_.tables.calls()) continue;
      return absl::DataLossError(
          fmt::format("a value of the run is of call {}; the package has {} calls", kept.call, run_.tables.calls()));
    }
    for (const graph::TensorId id : plan_.outputs) {
      const auto found = std::ranges::find(run_.kept.outputs, plan_.tensors[id].name, &run::KeptPort::name);
      if (found == run_.kept.outputs.end()) {
        return absl::InvalidArgumentError(fmt::format(
            "the package has no output '{}', which the model has; is it made from this file?", plan_.tensors[id].name));
      }
      outputs_.push_back(&found->array);
    }
    return absl::OkStatus();
  }

  // Finds the nodes of the file that compute each tensor.
  void FindMakers() {
    for (const graph::PlanCall& call : plan_.calls) {
      for (const graph::TensorId output : plan_.OutputsOf(call)) {
        std::vector<run::ModelNode>& nodes = makers_[plan_.Root(output)];
        if (!nodes.empty()) continue;
        for (const graph::Origin& origin : call.origins) nodes.push_back({origin.name, origin.op});
      }
    }
  }

  std::span<const Held> PlacesOf(size_t value) const {
    const auto held = held_.find(plan_.values[value].name);
    return held == held_.end() ? std::span<const Held>() : held->second;
  }

  // The shape of the value; `shape`, that of the tensor which holds it, if the run decides it.
  std::vector<int64_t> ShapeOf(graph::TensorId tensor, std::span<const int64_t> shape) const {
    const ir::Shape& planned = plan_.tensors[tensor].type.shape;
    return ir::IsFixed(planned) ? ir::Values(planned) : std::vector<int64_t>(shape.begin(), shape.end());
  }

  // The elements of the value as the package has them; nullopt if the order of its dimensions is not known.
  std::optional<std::vector<uint8_t>> ElementsOf(const Held& held, std::span<const int64_t> shape) const {
    const run::Array& array = run_.kept.tensors[held.kept].array;
    if (held.axes.empty()) return array.data;
    int64_t bytes = SizeOf(array.dtype);
    for (const int64_t extent : shape) bytes *= extent;
    if (shape.size() != held.axes.size() || bytes != static_cast<int64_t>(array.data.size())) return std::nullopt;
    return InOwnOrder(array.data, SizeOf(array.dtype), shape, held.axes);
  }

  // Tensors of different sizes or types differ everywhere.
  static Comparison Compare(DType dtype, DType expected_dtype, std::span<const uint8_t> actual,
                            std::span<const uint8_t> expected, const Tolerance& tolerance) {
    if (dtype == expected_dtype && actual.size() == expected.size()) {
      return CompareElements(dtype, actual, expected, tolerance);
    }
    Comparison comparison;
    comparison.elements = static_cast<int64_t>(expected.size()) / SizeOf(expected_dtype);
    comparison.wrong = std::max<int64_t>(comparison.elements, 1);
    comparison.max_error = std::numeric_limits<double>::infinity();
    comparison.histogram.back() = comparison.elements;
    return comparison;
  }

  // ValueDifference::mismatch.
  static std::string MismatchText(const run::Array& actual, std::span<const uint8_t> elements, DType expected_dtype,
                                  std::span<const uint8_t> expected) {
    if (actual.dtype == expected_dtype && elements.size() == expected.size()) return "";
    const auto count = [](std::span<const uint8_t> bytes, DType dtype) {
      return static_cast<int64_t>(bytes.size()) / SizeOf(dtype);
    };
    return fmt::format("the package has {} elements of type {}, the model has {} of type {}",
                       count(elements, actual.dtype), Name(actual.dtype), count(expected, expected_dtype),
                       Name(expected_dtype));
  }

  Comparison CompareValue(size_t value, const Held& held, std::span<const uint8_t> actual,
                          std::span<const uint8_t> expected) const {
    const graph::TensorId tensor = plan_.values[value].tensor;
    return Compare(run_.kept.tensors[held.kept].array.dtype, plan_.tensors[tensor].type.dtype, actual, expected,
                   bounds_[tensor]);
  }
  Comparison CompareOutput(size_t output, std::span<const uint8_t> expected, const Tolerance& tolerance) const {
    return Compare(outputs_[output]->dtype, plan_.tensors[plan_.outputs[output]].type.dtype, outputs_[output]->data,
                   expected, tolerance);
  }

  void AddTotals(size_t value, std::span<const int64_t> shape, std::span<const uint8_t> elements) {
    for (const Held& held : PlacesOf(value)) {
      const auto own = ElementsOf(held, ShapeOf(plan_.values[value].tensor, shape));
      if (own.has_value()) totals_[{value, held.kept}] = CompareValue(value, held, *own, elements).RelativeError();
    }
  }

  // Compares the value, and lets the unoptimized model go on with the package's elements.
  void Judge(size_t value, std::span<const int64_t> shape, std::span<uint8_t> elements) {
    const graph::TensorId tensor = plan_.values[value].tensor;
    const std::vector<int64_t> own_shape = ShapeOf(tensor, shape);
    std::vector<uint8_t> taken;
    for (const Held& held : PlacesOf(value)) {
      std::optional<std::vector<uint8_t>> own = ElementsOf(held, own_shape);
      if (!own.has_value() || !judged_.insert({plan_.Root(tensor), held.kept}).second)
        continue;  // or another name of them
      const run::KeptTensor& kept = run_.kept.tensors[held.kept];
      ValueDifference& added = Add(plan_.values[value].name, tensor, own_shape);
      added.error = CompareValue(value, held, *own, elements);
      added.mismatch = MismatchText(kept.array, *own, added.dtype, elements);
      if (added.IsWrong() && !taken.empty()) {
        // A kernel that brings a value into another layout is right if it agrees with what it reads.
        const Comparison copy = CompareValue(value, held, *own, taken);
        if (copy.wrong < added.error.wrong) added.error = copy;
      }
      added.total_error = totals_[{value, held.kept}];
      for (const size_t call : run_.tables.CallsBehind(kept.call, known_tensors_)) {
        added.kernels.push_back(run_.tables.Call(call));
      }
      if (taken.empty() && kept.array.dtype == added.dtype && own->size() == elements.size()) taken = *std::move(own);
    }
    if (!taken.empty()) std::memcpy(elements.data(), taken.data(), taken.size());
  }

  ValueDifference& Add(const std::string& name, graph::TensorId tensor, const std::vector<int64_t>& shape) {
    compared_.insert(plan_.Root(tensor));
    names_.insert(name);
    ValueDifference& added = result_.values.emplace_back();
    added.name = name;
    added.nodes = makers_[plan_.Root(tensor)];
    added.dtype = plan_.tensors[tensor].type.dtype;
    added.shape = shape;
    added.tolerance = bounds_[tensor];
    return added;
  }

  // Compares an output as the run has returned it: a copy, written by a loop, or shown by a call before.
  void JudgeOutput(size_t output, std::span<const int64_t> shape, std::span<const uint8_t> elements) {
    const graph::TensorId tensor = plan_.outputs[output];
    const std::string& name = plan_.tensors[tensor].name;
    const Comparison error = CompareOutput(output, elements, bounds_[tensor]);
    // One that a call has shown is judged already, but its copy at the end of the run may be wrong.
    if (names_.contains(name) && error.wrong == 0) return;
    ValueDifference& added = Add(name, tensor, ShapeOf(tensor, shape));
    added.error = error;
    added.mismatch = MismatchText(*outputs_[output], outputs_[output]->data, added.dtype, elements);
    added.total_error = output_totals_[output];
    std::set<size_t> seen;
    for (const size_t writer : run_.tables.WritersOfOutput(name)) {
      for (const size_t call : run_.tables.CallsBehind(writer, known_tensors_)) {
        if (seen.insert(call).second) added.kernels.push_back(run_.tables.Call(call));
      }
    }
  }

  void Count() {
    std::set<graph::TensorId> tensors;
    for (const graph::PlanValue& value : plan_.values) tensors.insert(plan_.Root(value.tensor));
    result_.not_compared = static_cast<size_t>(
        std::ranges::count_if(tensors, [&](graph::TensorId id) { return !compared_.contains(id); }));
    std::set<size_t> checked;
    for (const ValueDifference& value : result_.values) {
      for (const KernelCall& kernel : value.kernels) checked.insert(kernel.call);
    }
    result_.calls = run_.tables.calls();
    result_.checked_calls = checked.size();
  }

  ReferenceModel& reference_;
  const graph::Plan& plan_;  // of the unoptimized model; tensors without another word are its
  const PackageRun& run_;
  std::map<std::string, std::vector<Held>> held_;                  // by the value's name
  std::set<graph::TensorId> known_;                                // those that the package has as well; roots
  std::set<size_t> known_tensors_;                                 // the package's tensors that hold them
  std::vector<const run::Array*> outputs_;                         // of the package, in the order of the model
  std::vector<Tolerance> bounds_;                                  // per tensor
  std::map<graph::TensorId, std::vector<run::ModelNode>> makers_;  // by root
  std::map<std::pair<size_t, size_t>, double> totals_;             // by value and kept tensor
  std::map<size_t, double> output_totals_;                         // by output
  std::set<std::pair<graph::TensorId, size_t>> judged_;            // root and kept tensor
  std::set<graph::TensorId> compared_;                             // roots
  std::set<std::string> names_;                                    // of compared values
  ModelDifference result_;
};

}  // namespace

const ValueDifference* ModelDifference::First() const {
  const auto wrong = std::ranges::find_if(values, &ValueDifference::IsWrong);
  return wrong == values.end() ? nullptr : &*wrong;
}

absl::StatusOr<ModelDifference> DiffModel(ReferenceModel& reference, const PackageRun& run) {
  return Comparer(reference, run).Run();
}

}  // namespace hone::diff
