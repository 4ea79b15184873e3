// SPDX-License-Identifier: Apache-2.0
#include "compiler/opt/random_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/random.h"
#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/plan.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/text.h"
#include "fmt/format.h"

namespace hone::opt {
namespace {

// Limit for one tensor: interpreting a larger one would take days or exhaust memory.
constexpr int64_t kTensorBytesMax = int64_t{1} << 32;

// Range of the random values.
struct Range {
  double low, high;
};
Range DefaultRange(ir::DType dtype) { return {ir::IsFloat(dtype) ? -1.0 : 0.0, 1}; }

absl::StatusOr<ir::Bytes> RandomBytes(ir::DType dtype, int64_t elements, Range range, Random& random) {
  if (elements > kTensorBytesMax / ir::SizeOf(dtype)) {
    return absl::ResourceExhaustedError(fmt::format("a tensor of {} elements is too large to interpret", elements));
  }
  ir::Bytes bytes(static_cast<size_t>(elements * ir::SizeOf(dtype)));
  ir::FillRandom(dtype, range.low, range.high, random, bytes);
  return bytes;
}

absl::StatusOr<ir::Bytes> RandomParam(const ir::BufferNode& buffer, const std::vector<ir::Param>& ranges,
                                      Random& random) {
  Range range = DefaultRange(buffer.dtype);
  const auto known = std::ranges::find_if(ranges, [&](const ir::Param& p) { return p.buffer->name == buffer.name; });
  if (known != ranges.end()) range = {known->low, known->high};
  return RandomBytes(buffer.dtype, ir::NumElements(buffer), range, random);
}

absl::Status RunFunc(const ir::Func& func, Tensors& params) {
  std::vector<std::span<std::byte>> spans;
  for (size_t i = 0; i < func.params.size(); ++i) spans.emplace_back(params[i].bytes);
  return ir::Interpret(func, spans);
}

absl::StatusOr<Tensors> RandomParams(const ir::Func& func, uint64_t seed, const std::vector<ir::Param>& ranges) {
  Random random(seed);
  Tensors params;
  for (const ir::Buffer& param : func.params) {
    HONE_ASSIGN_OR_RETURN(ir::Bytes bytes, RandomParam(*param, ranges, random));
    params.push_back({param->name, param->dtype, std::move(bytes)});
  }
  return params;
}

// An element in the notation of constants; floats have no type suffix.
std::string FormatElement(ir::DType dtype, const std::byte* bytes) {
  if (ir::IsFloat(dtype)) return fmt::format("{}", ir::ElementAsDouble(dtype, bytes));
  return ir::Print(ir::ReadElement(dtype, bytes));
}

// Returns true if two elements have equal bits, are both NaN, or are floats within the tolerance, if that is nonzero.
bool IsSame(ir::DType dtype, const std::byte* expected, const std::byte* actual, std::optional<double> allowed) {
  if (std::memcmp(expected, actual, static_cast<size_t>(ir::SizeOf(dtype))) == 0) return true;
  if (!ir::IsFloat(dtype)) return false;
  const double x = ir::ElementAsDouble(dtype, expected), y = ir::ElementAsDouble(dtype, actual);
  if (std::isnan(x) && std::isnan(y)) return true;
  return allowed.has_value() && (x == y || std::fabs(x - y) <= *allowed);
}

}  // namespace

absl::StatusOr<Tensors> RunOnRandomInputs(const ir::Func& func, uint64_t seed, const std::vector<ir::Param>& ranges) {
  HONE_ASSIGN_OR_RETURN(Tensors params, RandomParams(func, seed, ranges));
  HONE_RETURN_IF_ERROR(RunFunc(func, params));
  return params;
}

absl::StatusOr<Tensors> RunOnRandomInputs(const ir::Workload& workload, uint64_t seed) {
  Random random(seed);
  std::vector<ir::Bytes> params;
  std::vector<std::span<const std::byte>> spans;
  for (const ir::Param& param : workload.params) {
    HONE_ASSIGN_OR_RETURN(ir::Bytes bytes, RandomParam(*param.buffer, workload.params, random));
    params.push_back(std::move(bytes));
  }
  for (const ir::Bytes& bytes : params) spans.emplace_back(bytes);
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Bytes> results, ir::Interpret(workload, spans));
  Tensors outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    outputs.push_back({workload.outputs[i]->name, workload.outputs[i]->dtype, std::move(results[i])});
  }
  return outputs;
}

absl::StatusOr<Tensors> RunOnRandomInputs(const ir::Workload& workload, const ir::Func& prepare, const ir::Func& main,
                                          uint64_t seed) {
  // The params come first, in the workload's order, so that they get the same random values as the workload's.
  HONE_ASSIGN_OR_RETURN(Tensors arguments, RandomParams(main, seed, workload.params));
  if (prepare.body.defined()) HONE_RETURN_IF_ERROR(RunFunc(prepare, arguments));
  HONE_RETURN_IF_ERROR(RunFunc(main, arguments));
  arguments.erase(arguments.begin(), arguments.end() - static_cast<ptrdiff_t>(workload.outputs.size()));
  return arguments;
}

absl::StatusOr<Tensors> RunOnRandomInputs(const graph::Graph& graph, uint64_t seed) {
  graph::Graph tidy = graph;
  graph::Tidy(tidy);
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(tidy));
  return RunOnRandomInputs(plan, seed);
}

absl::StatusOr<Tensors> RunOnRandomInputs(const graph::Plan& plan, uint64_t seed) {
  Random random(seed);
  std::vector<ir::Bytes> inputs;
  for (const graph::TensorId id : plan.inputs) {
    const graph::TensorType& type = plan.tensors[id].type;
    if (!ir::IsFixed(type.shape)) return absl::UnimplementedError("the graph has open sizes; give them numbers first");
    HONE_ASSIGN_OR_RETURN(ir::Bytes bytes,
                          RandomBytes(type.dtype, type.elements().value(), DefaultRange(type.dtype), random));
    inputs.push_back(std::move(bytes));
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Bytes> results, graph::InterpretPlan(plan, inputs));
  Tensors outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const graph::PlanTensor& tensor = plan.tensors[plan.outputs[i]];
    outputs.push_back({tensor.name, tensor.type.dtype, std::move(results[i])});
  }
  return outputs;
}

absl::Status ExpectSame(const Tensors& expected, const Tensors& actual, double tolerance) {
  if (expected.size() != actual.size()) {
    return absl::DataLossError(fmt::format("there are {} tensors; there should be {}", actual.size(), expected.size()));
  }
  for (size_t t = 0; t < expected.size(); ++t) {
    const Tensor& e = expected[t];
    const Tensor& a = actual[t];
    if (e.dtype != a.dtype || e.bytes.size() != a.bytes.size()) {
      return absl::DataLossError(fmt::format("{} has a different type or size than before", e.name));
    }
    const size_t size = static_cast<size_t>(ir::SizeOf(e.dtype));
    double largest = 0;
    for (size_t at = 0; at < e.bytes.size(); at += size) {
      const double x = std::fabs(ir::ElementAsDouble(e.dtype, &e.bytes[at]));
      if (std::isfinite(x)) largest = std::max(largest, x);
    }
    const std::optional<double> allowed = tolerance > 0 ? std::optional(tolerance * largest) : std::nullopt;
    for (size_t at = 0; at < e.bytes.size(); at += size) {
      if (IsSame(e.dtype, &e.bytes[at], &a.bytes[at], allowed)) continue;
      return absl::DataLossError(fmt::format("element {} of {} is {}, should be {}", at / size, e.name,
                                             FormatElement(a.dtype, &a.bytes[at]),
                                             FormatElement(e.dtype, &e.bytes[at])));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::opt
