#include "compiler/opt/meaning.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/plan.h"
#include "compiler/ir/elements.h"
#include "fmt/format.h"

namespace hone::opt {
namespace {

ir::Bytes RandomBytes(ir::DType dtype, int64_t elements, Random& random) {
  ir::Bytes bytes(static_cast<size_t>(elements * ir::SizeOf(dtype)));
  ir::FillRandom(dtype, ir::IsFloat(dtype) ? -1 : 0, 1, random, bytes);
  return bytes;
}

ir::Bytes RandomParam(const ir::BufferNode& buffer, const std::vector<ir::Param>& ranges, Random& random) {
  for (const ir::Param& param : ranges) {
    if (param.buffer->name != buffer.name) continue;
    ir::Bytes bytes(static_cast<size_t>(ir::NumBytes(buffer)));
    ir::FillRandom(buffer.dtype, param.low, param.high, random, bytes);
    return bytes;
  }
  return RandomBytes(buffer.dtype, ir::NumElements(buffer), random);
}

absl::Status RunFunc(const ir::Func& func, Tensors& params) {
  std::vector<std::span<std::byte>> spans;
  for (size_t i = 0; i < func.params.size(); ++i) spans.emplace_back(params[i].bytes);
  return ir::Interpret(func, spans);
}

Tensors RandomParams(const ir::Func& func, uint64_t seed, const std::vector<ir::Param>& ranges) {
  Random random(seed);
  Tensors params;
  for (const ir::Buffer& param : func.params) {
    params.push_back({param->name, param->dtype, RandomParam(*param, ranges, random)});
  }
  return params;
}

}  // namespace

absl::StatusOr<Tensors> Meaning(const ir::Func& func, uint64_t seed, const std::vector<ir::Param>& ranges) {
  Tensors params = RandomParams(func, seed, ranges);
  HONE_RETURN_IF_ERROR(RunFunc(func, params));
  return params;
}

absl::StatusOr<Tensors> Meaning(const ir::Workload& workload, uint64_t seed) {
  Random random(seed);
  std::vector<ir::Bytes> params;
  std::vector<std::span<const std::byte>> spans;
  for (const ir::Param& param : workload.params) params.push_back(RandomParam(*param.buffer, workload.params, random));
  for (const ir::Bytes& bytes : params) spans.emplace_back(bytes);
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Bytes> results, ir::Interpret(workload, spans));
  Tensors outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    outputs.push_back({workload.outputs[i]->name, workload.outputs[i]->dtype, std::move(results[i])});
  }
  return outputs;
}

absl::StatusOr<Tensors> Meaning(const ir::Workload& workload, const ir::Func& prepare, const ir::Func& main,
                                uint64_t seed) {
  // The params come first, in the order of the workload, so that they get the values that the workload got.
  Tensors arguments = RandomParams(main, seed, workload.params);
  if (prepare.body.defined()) HONE_RETURN_IF_ERROR(RunFunc(prepare, arguments));
  HONE_RETURN_IF_ERROR(RunFunc(main, arguments));
  arguments.erase(arguments.begin(), arguments.end() - static_cast<ptrdiff_t>(workload.outputs.size()));
  return arguments;
}

absl::StatusOr<Tensors> Meaning(const graph::Graph& graph, uint64_t seed) {
  graph::Graph tidy = graph;
  graph::Tidy(tidy);
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(tidy));
  Random random(seed);
  std::vector<ir::Bytes> inputs;
  for (const graph::TensorId id : plan.inputs) {
    const graph::TensorType& type = plan.tensors[id].type;
    inputs.push_back(RandomBytes(type.dtype, type.elements(), random));
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
    return absl::DataLossError(fmt::format("there are {} tensors, should be {}", actual.size(), expected.size()));
  }
  for (size_t t = 0; t < expected.size(); ++t) {
    const Tensor& e = expected[t];
    const Tensor& a = actual[t];
    if (e.dtype != a.dtype || e.bytes.size() != a.bytes.size()) {
      return absl::DataLossError(fmt::format("{} has another type or size than before", e.name));
    }
    const size_t size = static_cast<size_t>(ir::SizeOf(e.dtype));
    double largest = 0;
    for (size_t at = 0; at < e.bytes.size(); at += size) {
      const double x = std::fabs(ir::ElementAsDouble(e.dtype, &e.bytes[at]));
      if (std::isfinite(x)) largest = std::max(largest, x);
    }
    const double allowed = ir::IsFloat(e.dtype) ? tolerance * largest : 0;
    for (size_t at = 0; at < e.bytes.size(); at += size) {
      const double x = ir::ElementAsDouble(e.dtype, &e.bytes[at]), y = ir::ElementAsDouble(a.dtype, &a.bytes[at]);
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= allowed) continue;
      return absl::DataLossError(fmt::format("element {} of {} is {}, should be {}", at / size, e.name, y, x));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::opt
