// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/workload.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

using BufferMap = std::map<const BufferNode*, Buffer>;

// Replaces the variables and buffers that the maps name. Other buffers stay as they are; Verify reports them.
Expr Rename(const Expr& e, const VarMap& vars, const BufferMap& buffers) {
  if (const Var* var = e.As<Var>()) {
    const auto found = vars.find(var->name);
    return found == vars.end() ? e : found->second;
  }
  Expr renamed = MapChildren(e, [&](const Expr& child) { return Rename(child, vars, buffers); });
  const Load* load = renamed.As<Load>();
  if (load == nullptr) return renamed;
  const auto found = buffers.find(load->buffer.get());
  return found == buffers.end() ? renamed : MakeLoad(found->second, load->indices, load->mask);
}

using SizeMap = std::map<std::string, Size, std::less<>>;

Shape WithSizes(const Shape& shape, const SizeMap& sizes) {
  Shape result;
  for (const Size& size : shape) result.push_back(size.Substitute(sizes));
  return result;
}

Buffer Renamed(const BufferNode& buffer, std::string name, const SizeMap& sizes) {
  return MakeBuffer(std::move(name), buffer.dtype, WithSizes(buffer.shape, sizes), buffer.scope);
}

}  // namespace

std::vector<size_t> CanonicalParamOrder(const Workload& workload) {
  std::map<const BufferNode*, size_t> first_use;
  for (const Stage& stage : workload.stages) {
    ForEachExpr(stage.value, [&](const Expr& e) {
      if (const Load* load = e.As<Load>()) first_use.try_emplace(load->buffer.get(), first_use.size());
    });
  }
  // Params that no stage reads come last, in their old order.
  const auto rank = [&](size_t i) {
    const auto found = first_use.find(workload.params[i].buffer.get());
    return found == first_use.end() ? first_use.size() : found->second;
  };
  std::vector<size_t> order(workload.params.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return order;
}

// By first use: in the shapes of the params in canonical order, then in the axes of the stages. Sizes that none of
// these use come last, in their old order.
std::vector<size_t> CanonicalSizeOrder(const Workload& workload) {
  std::vector<size_t> order;
  const auto add = [&](const OpenSize& size) {
    const auto index = static_cast<size_t>(std::ranges::find(workload.sizes, size) - workload.sizes.begin());
    if (index < workload.sizes.size() && std::ranges::find(order, index) == order.end()) order.push_back(index);
  };
  if (workload.sizes.empty()) return order;
  for (size_t i : CanonicalParamOrder(workload)) {
    for (const Size& extent : workload.params[i].buffer->shape) extent.ForEachSymbol(add);
  }
  for (const Stage& stage : workload.stages) {
    for (const Axis& axis : stage.axes) axis.extent.ForEachSymbol(add);
    for (const Axis& axis : stage.reduce_axes) axis.extent.ForEachSymbol(add);
  }
  for (const OpenSize& size : workload.sizes) add(size);
  return order;
}

Workload Canonicalize(const Workload& workload) {
  Workload result;
  result.op = workload.op;
  BufferMap buffers;
  SizeMap sizes;
  VarMap size_vars;
  for (size_t from : CanonicalSizeOrder(workload)) {
    OpenSize size = workload.sizes[from];
    const std::string old = std::exchange(size.name, fmt::format("n{}", result.sizes.size()));
    sizes.emplace(old, Size::Open(size));
    size_vars.emplace(old, MakeVar(size.name));
    result.sizes.push_back(std::move(size));
  }
  for (size_t from : CanonicalParamOrder(workload)) {
    Param param = workload.params[from];
    const Buffer old = param.buffer;
    param.buffer = Renamed(*old, fmt::format("p{}", result.params.size()), sizes);
    buffers[old.get()] = param.buffer;
    result.params.push_back(std::move(param));
  }
  int next_axis = 0;
  for (const Stage& old : workload.stages) {
    Stage stage = old;
    VarMap vars = size_vars;
    const auto rename_axes = [&](std::vector<Axis>& axes) {
      for (Axis& axis : axes) {
        std::string name = fmt::format("i{}", next_axis++);
        vars.emplace(axis.name, MakeVar(name));
        axis.name = std::move(name);
        axis.extent = axis.extent.Substitute(sizes);
      }
    };
    rename_axes(stage.axes);
    rename_axes(stage.reduce_axes);
    stage.value = Rename(old.value, vars, buffers);
    stage.buffer = Renamed(*old.buffer, fmt::format("t{}", result.stages.size()), sizes);
    buffers[old.buffer.get()] = stage.buffer;
    result.stages.push_back(std::move(stage));
  }
  for (const Buffer& output : workload.outputs) {
    const auto found = buffers.find(output.get());
    result.outputs.push_back(found == buffers.end() ? output : found->second);
  }
  return result;
}

Workload WithSizes(const Workload& workload, const std::map<std::string, int64_t, std::less<>>& values) {
  Workload result = workload;
  result.sizes.clear();
  SizeMap sizes;
  VarMap vars;
  for (const OpenSize& size : workload.sizes) {
    const auto value = values.find(size.name);
    HONE_CHECK(value != values.end() && value->second >= size.min && value->second <= size.max);
    sizes.emplace(size.name, value->second);
    vars.emplace(size.name, Expr(value->second));
  }
  return MapSizes(
      std::move(result), [&](const Size& size) { return size.Substitute(sizes); },
      [&](const Expr& value) { return Rename(value, vars, {}); });
}

Workload MapSizes(Workload workload, const std::function<Size(const Size&)>& size_fn,
                  const std::function<Expr(const Expr&)>& value_fn) {
  BufferMap buffers;
  const auto renew = [&](Buffer& buffer) {
    Shape shape;
    for (const Size& extent : buffer->shape) shape.push_back(size_fn(extent));
    const Buffer old = std::exchange(buffer, MakeBuffer(buffer->name, buffer->dtype, shape, buffer->scope));
    buffers[old.get()] = buffer;
  };
  for (Param& param : workload.params) renew(param.buffer);
  for (Stage& stage : workload.stages) {
    for (Axis& axis : stage.axes) axis.extent = size_fn(axis.extent);
    for (Axis& axis : stage.reduce_axes) axis.extent = size_fn(axis.extent);
    stage.value = Rename(value_fn(stage.value), {}, buffers);
    renew(stage.buffer);
  }
  for (Buffer& output : workload.outputs) {
    if (const auto found = buffers.find(output.get()); found != buffers.end()) output = found->second;
  }
  return workload;
}

}  // namespace hone::ir
