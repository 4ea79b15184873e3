// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/analysis.h"

#include <algorithm>

#include "base/status.h"

namespace hone::space {

std::vector<std::string> Readers(const schedule::State& state, const ir::BufferNode* buffer) {
  std::vector<std::string> readers;
  for (const schedule::Nest& nest : state.nests) {
    if (schedule::Reads(nest.stage, buffer)) readers.push_back(nest.stage.buffer->name);
  }
  return readers;
}

std::vector<ir::Load> LoadsOf(const ir::Stage& stage) {
  std::vector<ir::Load> loads;
  ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
    if (const ir::Load* load = e.As<ir::Load>()) loads.push_back(*load);
  });
  return loads;
}

int CountLoads(const schedule::State& state, const ir::BufferNode* buffer) {
  int count = 0;
  for (const schedule::Nest& nest : state.nests) {
    for (const ir::Load& load : LoadsOf(nest.stage)) count += load.buffer.get() == buffer ? 1 : 0;
  }
  return count;
}

std::vector<int64_t> ExtentsOf(const ir::Stage& stage) {
  std::vector<int64_t> extents;
  for (const ir::Axis& axis : stage.axes) extents.push_back(axis.extent.max());
  return extents;
}

std::optional<int64_t> StrideOf(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges) {
  int64_t stride = 1, total = 0;
  for (size_t d = load.indices.size(); d-- > 0;) {
    for (const auto& [atom, k] : ir::ToLinear(load.indices[d], ranges).terms) {
      const ir::Var* v = atom.As<ir::Var>();
      if (v != nullptr && v->name == axis) {
        total += k * stride;
      } else if (ir::UsesVar(atom, axis)) {
        return std::nullopt;
      }
    }
    stride *= load.buffer->shape[d].max();
  }
  return total;
}

bool ReadsInPlace(const ir::Stage& stage, const ir::Buffer& buffer) {
  for (const ir::Load& load : LoadsOf(stage)) {
    if (load.buffer != buffer) continue;
    if (load.indices.size() != stage.axes.size()) return false;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const ir::Var* v = load.indices[d].As<ir::Var>();
      const bool same = v != nullptr && v->name == stage.axes[d].name;
      const bool unit = stage.axes[d].extent == 1 && ir::ConstantValue(load.indices[d], AxisRanges(stage)) == 0;
      if ((!same && !unit) || buffer->shape[d] != stage.axes[d].extent) return false;
    }
  }
  return true;
}

bool HasWindow(const ir::Stage& stage) {
  const auto uses_any = [](const ir::Expr& index, const std::vector<ir::Axis>& axes) {
    return std::ranges::any_of(axes, [&](const ir::Axis& a) { return ir::UsesVar(index, a.name); });
  };
  return std::ranges::any_of(LoadsOf(stage), [&](const ir::Load& load) {
    return std::ranges::any_of(load.indices, [&](const ir::Expr& index) {
      return uses_any(index, stage.axes) && uses_any(index, stage.reduce_axes);
    });
  });
}

int CountNodes(const ir::Expr& e) {
  int count = 0;
  ir::ForEachExpr(e, [&](const ir::Expr&) { ++count; });
  return count;
}

bool HasCall(const ir::Expr& e) {
  bool found = false;
  ir::ForEachExpr(e, [&](const ir::Expr& x) { found |= x.As<ir::Call>() != nullptr; });
  return found;
}

int64_t TaskSize(int64_t extent, int64_t tasks, int64_t threads) {
  const auto size_of = [&](int64_t count) { return std::max<int64_t>(1, (extent + count - 1) / count); };
  const auto most = [&](int64_t size) { return BusiestThreadIterations(extent, size, 1, threads); };
  int64_t best = size_of(tasks);
  for (int64_t count = tasks - 1; count >= threads; --count) {
    if (kWorthwhileGainMin * static_cast<double>(most(size_of(count))) < static_cast<double>(most(best)))
      best = size_of(count);
  }
  return best;
}

std::vector<int64_t> TaskCounts(std::set<int64_t> counts, int64_t threads) {
  counts.insert({threads, 2 * threads, 4 * threads});
  return {counts.begin(), counts.end()};
}

int64_t BusiestThreadIterations(int64_t extent, int64_t size, int64_t batch, int64_t threads) {
  const int64_t count = (extent + size - 1) / size * batch;
  return (count + threads - 1) / threads * size;
}

std::vector<int64_t> TypicalExtents(const ir::Size& size) {
  constexpr int64_t kExtentsMax = 16;
  int64_t multiple = 1;
  while (multiple < 32 && Divides(2 * multiple, size)) multiple *= 2;
  const int64_t least = std::max(size.min(), multiple), most = std::max(size.max(), least);
  const int64_t step = ((most - least) / kExtentsMax + multiple) / multiple * multiple;
  std::vector<int64_t> extents;
  for (int64_t extent = least; extent <= most; extent += step) extents.push_back(extent);
  return extents;
}

int64_t PowerOf2Ceil(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

std::vector<std::string> StagesOf(const schedule::State& state) {
  std::vector<std::string> stages;
  for (const schedule::Nest& nest : state.nests) stages.push_back(nest.stage.buffer->name);
  return stages;
}

int64_t RowBytes(const ir::Stage& stage, size_t common) {
  int64_t bytes = ir::SizeOf(stage.buffer->dtype);
  for (size_t d = common; d < stage.axes.size(); ++d) bytes *= stage.axes[d].extent.max();
  return bytes;
}

bool IsContraction(const ir::Stage& stage) {
  const ir::Binary* product = stage.value.As<ir::Binary>();
  if (stage.reduction != ir::Reduction::kSum || product == nullptr || product->op != ir::BinaryOp::kMul) return false;
  const std::vector<ir::Load> loads = LoadsOf(stage);
  return loads.size() == 2 && loads[0].buffer != loads[1].buffer;
}

size_t CommonAxes(const schedule::State& state) {
  size_t common = state.outputs[0]->shape.size();
  for (const schedule::Nest& nest : state.nests) {
    common = std::min(common, nest.stage.axes.size());
    for (const ir::Load& load : LoadsOf(nest.stage)) {
      if (state.FindNest(load.buffer.get()) == nullptr) continue;
      size_t same = 0;
      while (same < load.indices.size() && same < nest.stage.axes.size()) {
        const ir::Var* v = load.indices[same].As<ir::Var>();
        const bool unit = nest.stage.axes[same].extent == 1 && load.buffer->shape[same] == 1;
        if (!unit && (v == nullptr || v->name != nest.stage.axes[same].name)) break;
        if (load.buffer->shape[same] != nest.stage.axes[same].extent) break;
        ++same;
      }
      common = std::min(common, same);
    }
  }
  return common;
}

}  // namespace hone::space
