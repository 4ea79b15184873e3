// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

// Checks that every source dimension appears exactly once: whole, or as quotient and remainder of one factor.
absl::Status CheckPack(const Pack& step, const ir::BufferNode& source) {
  const int rank = static_cast<int>(source.shape.size());
  for (int d = 0; d < rank; ++d) {
    int whole = 0, quotient = 0, remainder = 0;
    int64_t factor = 0;
    bool same = true;
    for (const PackDim& p : step.dims) {
      if (p.dim != d) continue;
      if (p.factor == 0) {
        ++whole;
        continue;
      }
      same = same && (factor == 0 || factor == p.factor);
      factor = p.factor;
      ++(p.remainder ? remainder : quotient);
    }
    const bool good =
        (whole == 1 && quotient == 0 && remainder == 0) || (whole == 0 && quotient == 1 && remainder == 1 && same);
    if (!good)
      return absl::FailedPreconditionError(fmt::format(
          "dimension {} of {} must appear once whole, or once divided and once as remainder", d, source.name));
  }
  for (const PackDim& p : step.dims) {
    if (p.dim < 0 || p.dim >= rank)
      return absl::FailedPreconditionError(fmt::format("{} has no dimension {}", source.name, p.dim));
    if (p.factor > std::max(source.shape[p.dim].max(), kPaddedTileElementsMax)) {
      return absl::FailedPreconditionError(
          fmt::format("tiles of {} are too large for dimension {} of {}, which has {} elements", p.factor, p.dim,
                      source.name, source.shape[p.dim]));
    }
  }
  return absl::OkStatus();
}

// packed[dims] = source[...]; padding elements are 0.
ir::Stage PackStage(const Pack& step, const ir::Buffer& source) {
  ir::Stage stage;
  ir::Shape shape;
  std::vector<ir::Expr> index(source->shape.size(), ir::Expr(0));
  const std::string name = step.buffer + "p" + step.stage;
  for (size_t i = 0; i < step.dims.size(); ++i) {
    const PackDim& p = step.dims[i];
    const ir::Size& extent = source->shape[p.dim];
    shape.push_back(p.factor == 0 ? extent : p.remainder ? ir::Size(p.factor) : CeilDiv(extent, p.factor));
    stage.axes.push_back({fmt::format("{}_{}", name, i), shape.back()});
    const ir::Expr v = ir::MakeVar(stage.axes.back().name);
    index[p.dim] = p.factor == 0 || p.remainder ? index[p.dim] + v : index[p.dim] + v * ir::Expr(p.factor);
  }
  ir::Expr inside;
  for (const PackDim& p : step.dims) {
    if (p.factor == 0 || p.remainder || Divides(p.factor, source->shape[p.dim])) continue;
    const ir::Expr condition = index[p.dim] < ir::Expr(source->shape[p.dim]);
    inside = inside.defined() ? inside && condition : condition;
  }
  stage.buffer = ir::MakeBuffer(name, source->dtype, std::move(shape));
  stage.value = ir::MakeLoad(source, std::move(index));
  if (inside.defined()) stage.value = ir::MakeSelect(inside, stage.value, ir::MakeZero(stage.value.type()));
  return stage;
}

}  // namespace

absl::Status Apply(const Pack& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  HONE_ASSIGN_OR_RETURN(const ir::Buffer source, FindCopySource(state, *nest, step.buffer));
  if (absl::Status status = CheckPack(step, *source); !status.ok()) return status;
  Nest packed = MakeNest(PackStage(step, source));
  packed.prepared = IsFixed(state, source.get());
  const ir::Buffer buffer = packed.stage.buffer;
  nest->stage.value = ReplaceLoads(nest->stage.value, source.get(), [&](const std::vector<ir::Expr>& indices) {
    std::vector<ir::Expr> moved;
    for (const PackDim& p : step.dims) {
      const ir::Expr& i = indices[p.dim];
      moved.push_back(p.factor == 0 ? i
                      : p.remainder ? ir::FloorMod(i, ir::Expr(p.factor))
                                    : ir::FloorDiv(i, ir::Expr(p.factor)));
    }
    return ir::MakeLoad(buffer, std::move(moved));
  });
  state.nests.insert(state.nests.begin() + (nest - state.nests.data()), std::move(packed));
  return absl::OkStatus();
}

}  // namespace hone::schedule
