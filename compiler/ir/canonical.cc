// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>

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

Buffer Renamed(const BufferNode& buffer, std::string name) {
  return MakeBuffer(std::move(name), buffer.dtype, buffer.shape, buffer.scope);
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

Workload Canonicalize(const Workload& workload) {
  Workload result;
  result.op = workload.op;
  BufferMap buffers;
  for (size_t from : CanonicalParamOrder(workload)) {
    Param param = workload.params[from];
    const Buffer old = param.buffer;
    param.buffer = Renamed(*old, fmt::format("p{}", result.params.size()));
    buffers[old.get()] = param.buffer;
    result.params.push_back(std::move(param));
  }
  int next_axis = 0;
  for (const Stage& old : workload.stages) {
    Stage stage = old;
    VarMap vars;
    const auto rename_axes = [&](std::vector<Axis>& axes) {
      for (Axis& axis : axes) {
        std::string name = fmt::format("i{}", next_axis++);
        vars.emplace(axis.name, MakeVar(name));
        axis.name = std::move(name);
      }
    };
    rename_axes(stage.axes);
    rename_axes(stage.reduce_axes);
    stage.value = Rename(old.value, vars, buffers);
    stage.buffer = Renamed(*old.buffer, fmt::format("t{}", result.stages.size()));
    buffers[old.buffer.get()] = stage.buffer;
    result.stages.push_back(std::move(stage));
  }
  for (const Buffer& output : workload.outputs) {
    const auto found = buffers.find(output.get());
    result.outputs.push_back(found == buffers.end() ? output : found->second);
  }
  return result;
}

}  // namespace hone::ir
