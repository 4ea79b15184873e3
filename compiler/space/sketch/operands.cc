// SPDX-License-Identifier: Apache-2.0
// Layout, sizes and producers of a tiled reduction's operands. Templates and sketch rules share these functions.
#include "compiler/space/sketch/operands.h"

#include <algorithm>
#include <cstdlib>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kUnrolledRowVectorsMax =
    8;  // the most vectors of a row that are unrolled, so that it is known at compile time which of them meet padding

// Whether the term of an index changes while every axis runs through the given number of values.
bool MovesWith(const ir::Expr& atom, const AxisExtents& extents) {
  return std::ranges::any_of(extents,
                             [&](const auto& axis) { return axis.second > 1 && ir::UsesVar(atom, axis.first); });
}

// Fuses the last two loops of a stage that only converts numbers, if the last one is shorter than a vector and runs
// over whole rows, so that vectors lie across rows.
absl::Status FuseShortRows(Sketch& sketch, const std::string& producer) {
  const schedule::Nest& nest = sketch.Get(producer);
  const size_t count = nest.loops.size();
  if (!IsWidening(nest.stage) || count < 2) return absl::OkStatus();
  const schedule::Loop &outer = nest.loops[count - 2], &inner = nest.loops[count - 1];
  const auto is_fixed = [](const schedule::Loop& loop) { return loop.extent.As<ir::IntImm>() != nullptr; };
  const bool whole = nest.stage.buffer->shape.back() == inner.max_extent && is_fixed(outer) && is_fixed(inner);
  if (!whole || inner.max_extent >= sketch.target.VectorWidth(4)) return absl::OkStatus();
  return sketch.Fuse(outer.name, inner.name).status();
}

}  // namespace

std::vector<std::string> ReductionOrder(const ir::Stage& stage, const std::string& vector) {
  const ir::Ranges ranges = AxisRanges(stage);
  const std::vector<ir::Load> loads = LoadsOf(stage);
  std::vector<std::pair<int64_t, std::string>> order;
  for (const ir::Axis& axis : stage.reduce_axes) {
    int64_t stride = 0;
    for (const ir::Load& load : loads) {
      const bool vectors = StrideOf(load, vector, ranges).value_or(1) != 0;
      if (vectors && stage.reduction == ir::Reduction::kSum && loads.size() > 1) continue;
      stride = std::max(stride, std::abs(StrideOf(load, axis.name, ranges).value_or(1 << 20)));
    }
    order.emplace_back(-stride, axis.name);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [stride, name] : order) names.push_back(name);
  return names;
}

std::vector<schedule::PackDim> PackedOrder(const ir::Load& load, const std::string& vector, int64_t width,
                                           const std::vector<std::string>& reduce_order) {
  std::vector<schedule::PackDim> outer;
  int vector_dim = -1;
  std::vector<std::pair<size_t, int>> reduced;
  for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
    const ir::Var* v = load.indices[static_cast<size_t>(d)].As<ir::Var>();
    if (v == nullptr) {
      if (load.buffer->shape[static_cast<size_t>(d)] != 1) return {};
      outer.push_back({d});
      continue;
    }
    const auto place = std::find(reduce_order.begin(), reduce_order.end(), v->name);
    if (v->name == vector) {
      if (vector_dim >= 0) return {};
      vector_dim = d;
    } else if (place != reduce_order.end()) {
      reduced.emplace_back(place - reduce_order.begin(), d);
    } else {
      outer.push_back({d});
    }
  }
  if (vector_dim < 0) return {};
  std::sort(reduced.begin(), reduced.end());
  std::vector<schedule::PackDim> order = outer;
  order.push_back({vector_dim, width, false});
  for (const auto& [place, d] : reduced) order.push_back({d});
  order.push_back({vector_dim, width, true});
  return order;
}

absl::Status PackLast(Sketch& sketch, const std::string& stage, const ir::Load& load, const std::string& axis) {
  std::vector<schedule::PackDim> others, along;
  for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
    (ir::UsesVar(load.indices[static_cast<size_t>(d)], axis) ? along : others).push_back({d});
  }
  if (along.size() != 1) return absl::OkStatus();
  others.push_back(along[0]);
  return sketch.Do(schedule::Pack{load.buffer->name, stage, std::move(others)});
}

std::vector<std::string> OwnProducers(const schedule::State& state, const ir::Stage& stage) {
  std::vector<std::string> producers;
  for (const ir::Load& load : LoadsOf(stage)) {
    const schedule::Nest* nest = state.FindNest(load.buffer.get());
    if (nest == nullptr || nest->stage.reduction != ir::Reduction::kNone || state.IsOutput(load.buffer.get())) continue;
    if (nest->prepared) continue;
    const std::string& name = load.buffer->name;
    const bool known = std::find(producers.begin(), producers.end(), name) != producers.end();
    if (known || !nest->IsTopLevel() || nest->has_loop_steps || Readers(state, load.buffer.get()).size() != 1) continue;
    producers.push_back(name);
  }
  return producers;
}

std::string SumsBehind(const schedule::State& state, const std::string& stage) {
  for (const ir::Load& load : LoadsOf(state.FindNest(stage)->stage)) {
    const schedule::Nest* made = state.FindNest(load.buffer.get());
    if (made == nullptr || !IsContraction(made->stage) || !made->IsTopLevel() || made->has_loop_steps) continue;
    const bool alone = Readers(state, load.buffer.get()).size() == 1 && !state.IsOutput(load.buffer.get());
    if (alone && ReadsInPlace(state.FindNest(stage)->stage, load.buffer)) return load.buffer->name;
  }
  return "";
}

bool FeedsProduct(const schedule::State& state, const std::string& stage) {
  const ir::Buffer& made = state.FindNest(stage)->stage.buffer;
  const std::vector<std::string> readers = Readers(state, made.get());
  if (readers.size() != 1 || SumsBehind(state, stage).empty()) return false;
  const ir::Stage& product = state.FindNest(readers[0])->stage;
  const std::vector<std::string> own = OwnProducers(state, product);
  if (!IsContraction(product) || std::ranges::find(own, stage) == own.end()) return false;
  return product.axes.back().extent.max() > 1 && std::ranges::all_of(LoadsOf(product), [&](const ir::Load& load) {
           return load.buffer != made || std::ranges::none_of(load.indices, [&](const ir::Expr& index) {
                    return ir::UsesVar(index, product.axes.back().name);
                  });
         });
}

std::vector<int64_t> RegionOf(const ir::Load& load, const ir::Ranges& ranges, const AxisExtents& extents) {
  const auto extent_of = [&](const std::string& axis) {
    const auto extent = extents.find(axis);
    return extent == extents.end() ? 1 : extent->second;
  };
  std::vector<int64_t> region;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    int64_t span = 1;
    bool whole = false;
    for (const auto& [atom, k] : ir::ToLinear(load.indices[d], ranges).terms) {
      if (!MovesWith(atom, extents)) continue;
      if (const ir::Var* v = atom.As<ir::Var>()) {
        span += std::abs(k) * (extent_of(v->name) - 1);
        continue;
      }
      // A term such as axis / c differs from tile to tile if the tile covers only a part of the axis. Then the whole
      // dimension counts.
      const ir::Interval bounds = ir::BoundsOf(atom, ranges);
      whole |= bounds.high >= ir::Interval::kUnbounded || bounds.low <= -ir::Interval::kUnbounded ||
               std::ranges::any_of(ranges, [&](const auto& axis) {
                 return ir::UsesVar(atom, axis.first) && extent_of(axis.first) <= axis.second.high;
               });
      if (!whole) span += std::abs(k) * (bounds.high - bounds.low);
    }
    region.push_back(whole ? load.buffer->shape[d].max() : span);
  }
  return region;
}

int64_t RegionBytes(const ir::Load& load, const ir::Ranges& ranges, const AxisExtents& extents) {
  int64_t bytes = ir::SizeOf(load.buffer->dtype);
  const std::vector<int64_t> region = RegionOf(load, ranges, extents);
  for (size_t d = 0; d < region.size(); ++d) {
    const bool affine = std::ranges::none_of(ir::ToLinear(load.indices[d], ranges).terms, [&](const auto& term) {
      return term.first.template As<ir::Var>() == nullptr && MovesWith(term.first, extents);
    });
    const int64_t all = load.buffer->shape[d].max();
    bytes *= affine ? std::min(region[d], all) : all;
  }
  return bytes;
}

int64_t CopiedBytesMax(const target::Target& target) {
  return std::min(target.memory.local_bytes, target.memory.l2_bytes) / 2;
}

bool IsWidening(const ir::Stage& stage) {
  const ir::Cast* cast = stage.value.As<ir::Cast>();
  return cast != nullptr && cast->value.As<ir::Load>() != nullptr && ir::IsFloat(stage.buffer->dtype) &&
         ir::IsFloat(cast->value.type().dtype) &&
         ir::SizeOf(stage.buffer->dtype) > ir::SizeOf(cast->value.type().dtype);
}

absl::Status VectorizeCopy(Sketch& sketch, const std::string& producer) {
  if (sketch.Get(producer).loops.empty()) return absl::OkStatus();  // one element
  HONE_RETURN_IF_ERROR(FuseShortRows(sketch, producer));
  const schedule::Loop last = sketch.Get(producer).loops.back();
  const int64_t width = std::min<int64_t>(sketch.target.VectorWidth(4), PowerOf2Ceil(last.max_extent));
  if (width <= 1) return absl::OkStatus();
  const bool constant = last.extent.As<ir::IntImm>() != nullptr && last.max_extent >= width;
  const schedule::Tail tail = constant ? schedule::Tail::kShift : schedule::Tail::kMask;
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(last.name, width, tail));
  const int64_t vectors = (last.max_extent + width - 1) / width;
  if (constant && vectors > 1 && vectors <= kUnrolledRowVectorsMax) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{split.outer, ir::LoopKind::kUnrolled}));
  }
  return sketch.Do(schedule::Annotate{split.inner, ir::LoopKind::kVectorized});
}

}  // namespace hone::space
