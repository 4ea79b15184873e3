// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/sizes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"

namespace hone::fuzz {
namespace {

using tests::SizeMap;

constexpr int kRandomSizes = 4;

using Numbers = std::map<std::string, ir::Size, std::less<>>;

Numbers NumbersOf(const SizeMap& sizes) { return {sizes.begin(), sizes.end()}; }

int64_t ValueOf(const ir::Size& size, const Numbers& numbers) { return size.Substitute(numbers).value(); }

graph::TensorType AtNumbers(graph::TensorType type, const Numbers& numbers) {
  for (ir::Size& extent : type.shape) extent = ValueOf(extent, numbers);
  return type;
}

graph::TensorData ElementsAt(const graph::Value& value, const SizeMap& sizes) {
  ir::VarMap numbers;
  for (const auto& [name, number] : sizes) numbers[name] = ir::Expr(number);
  const auto size = static_cast<size_t>(ir::SizeOf(value.type.dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>(value.elements->size() * size);
  for (size_t i = 0; i < value.elements->size(); ++i) {
    ir::WriteElement(ir::Simplify(ir::Substitute((*value.elements)[i], numbers)), &(*bytes)[i * size]);
  }
  return bytes;
}

SizeMap SizesOfCall(const graph::Plan& plan, const graph::PlanCall& call, const Numbers& numbers) {
  const ir::Workload& workload = plan.workloads[static_cast<size_t>(call.workload)];
  SizeMap sizes;
  for (size_t i = 0; i < call.sizes.size(); ++i) sizes[workload.sizes[i].name] = ValueOf(call.sizes[i], numbers);
  return sizes;
}

}  // namespace

std::vector<SizeMap> DrawSizes(const std::vector<ir::OpenSize>& sizes, uint64_t seed) {
  if (sizes.empty()) return tests::kFixedSizes;
  Random random(seed);
  std::vector<SizeMap> drawn(2 + kRandomSizes);
  for (const ir::OpenSize& size : sizes) {
    drawn[0][size.name] = size.max;
    drawn[1][size.name] = size.min;
    for (size_t i = 2; i < drawn.size(); ++i) drawn[i][size.name] = size.min + random.Below(size.max - size.min + 1);
  }
  return drawn;
}

graph::Graph AtSizes(graph::Graph graph, const SizeMap& sizes) {
  const Numbers numbers = NumbersOf(sizes);
  for (graph::Value& value : graph.values) {
    value.type = AtNumbers(std::move(value.type), numbers);
    if (value.elements == nullptr) continue;
    value.data = ElementsAt(value, sizes);
    value.elements = nullptr;
  }
  graph.sizes.clear();
  return graph;
}

graph::Plan AtSizes(const graph::Plan& plan, const SizeMap& sizes) {
  const Numbers numbers = NumbersOf(sizes);
  graph::Plan fixed = plan;
  fixed.sizes.clear();
  fixed.workloads.clear();
  for (graph::PlanTensor& tensor : fixed.tensors) tensor.type = AtNumbers(std::move(tensor.type), numbers);
  for (graph::PlanCall& call : fixed.calls) {
    fixed.workloads.push_back(
        ir::WithSizes(plan.workloads[static_cast<size_t>(call.workload)], SizesOfCall(plan, call, numbers)));
    call = {.workload = static_cast<int>(fixed.workloads.size()) - 1, .arguments = call.arguments};
  }
  return fixed;
}

std::vector<SizeMap> SizesOfWorkload(const graph::Plan& plan, int workload, const std::vector<SizeMap>& sizes) {
  const auto call = std::ranges::find(plan.calls, workload, &graph::PlanCall::workload);
  HONE_CHECK(call != plan.calls.end());
  std::vector<SizeMap> own;
  for (const SizeMap& values : sizes) {
    SizeMap of_call = SizesOfCall(plan, *call, NumbersOf(values));
    if (std::ranges::count(own, of_call) == 0) own.push_back(std::move(of_call));
  }
  return own;
}

}  // namespace hone::fuzz
