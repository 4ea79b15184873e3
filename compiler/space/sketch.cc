// SPDX-License-Identifier: Apache-2.0
// The steps of a sketch. This file is the only one that knows the names that steps give to loops, axes and stages.
// compiler/schedule/steps has the steps themselves.

#include "compiler/space/sketch.h"

#include "base/status.h"

namespace hone::space {
namespace {

constexpr int64_t kFewTiles = 8;  // of fewer tiles, one that overlaps another is a large part

}  // namespace

absl::Status Sketch::Do(schedule::Step step) {
  absl::Status status = schedule::Apply(step, state);
  if (!status.ok()) return Annotate(status, "step '" + schedule::Print(step) + "'");
  steps.push_back(std::move(step));
  return status;
}

absl::Status Sketch::DoAll(const schedule::Schedule& taken) {
  for (const schedule::Step& step : taken) HONE_RETURN_IF_ERROR(Do(step));
  return absl::OkStatus();
}

const schedule::Loop& Sketch::GetLoop(const std::string& name) {
  size_t position = 0;
  const schedule::Nest* nest = state.FindLoop(name, &position);
  HONE_CHECK(nest != nullptr);
  return nest->loops[position];
}

schedule::Tail Sketch::TailOf(const std::string& name, int64_t factor) {
  const schedule::Loop& loop = GetLoop(name);
  const ir::Size size = state.IterationsOf(loop).value_or(loop.max_extent);
  if (!state.IsOpen(loop.extent)) return size.max() >= factor ? schedule::Tail::kShift : schedule::Tail::kMask;
  const bool fits = state.IterationsOf(loop).has_value() && (size.min() >= factor || Divides(factor, size));
  return fits ? schedule::Tail::kShift : schedule::Tail::kPeel;
}

bool Sketch::IsOpen(const std::string& name) { return state.IsOpen(GetLoop(name).extent); }

bool Sketch::HasMultiple(const std::string& name, int64_t factor) {
  const std::optional<ir::Size> size = state.IterationsOf(GetLoop(name));
  return size.has_value() && Divides(factor, *size);
}

absl::StatusOr<SplitLoops> Sketch::Split(const std::string& loop, int64_t factor, schedule::Tail tail) {
  size_t position = 0;
  const schedule::Nest* nest = state.FindLoop(loop, &position);
  const bool open = nest != nullptr && state.IsOpen(nest->loops[position].extent);
  if (open && tail == schedule::Tail::kShift) tail = TailOf(loop, factor);
  HONE_RETURN_IF_ERROR(Do(schedule::Split{loop, factor, tail}));
  return SplitLoops{loop + "o", loop + "i"};
}

absl::StatusOr<SplitLoops> Sketch::SplitFitted(const std::string& loop, int64_t factor) {
  size_t position = 0;
  const schedule::Nest* nest = state.FindLoop(loop, &position);
  const bool open = nest != nullptr && state.IsOpen(nest->loops[position].extent);
  const std::optional<ir::Size> size = open ? state.IterationsOf(nest->loops[position]) : std::nullopt;
  const bool few =
      open && factor <= schedule::kFittedTileMax && (!size.has_value() || size->min() < kFewTiles * factor);
  if (!few || factor == 1) return Split(loop, factor, schedule::Tail::kShift);
  HONE_RETURN_IF_ERROR(Do(schedule::Split{loop, factor, schedule::Tail::kFit}));
  return SplitLoops{loop + "o", loop + "i"};
}

absl::StatusOr<std::string> Sketch::Fuse(const std::string& outer, const std::string& inner) {
  HONE_RETURN_IF_ERROR(Do(schedule::Fuse{outer, inner}));
  return outer + "_" + inner;
}

absl::StatusOr<std::string> Sketch::FuseAll(const std::vector<std::string>& loops) {
  std::string fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(fused, Fuse(fused, loops[i]));
  }
  return fused;
}

absl::StatusOr<SplitAxes> Sketch::SplitAxis(const std::string& stage, const std::string& axis, int64_t factor) {
  HONE_RETURN_IF_ERROR(Do(schedule::SplitAxis{stage, axis, factor}));
  return SplitAxes{axis + "x", axis + "y"};
}

absl::StatusOr<Partials> Sketch::Rfactor(const schedule::Rfactor& step) {
  HONE_RETURN_IF_ERROR(Do(step));
  const ir::Stage& sums = Get(step.stage).stage;  // the stage reads only the partial results, along one axis
  const ir::Load* partials = sums.value.As<ir::Load>();
  HONE_CHECK(partials != nullptr);
  return Partials{partials->buffer->name, sums.reduce_axes[0].name};
}

absl::StatusOr<std::string> Sketch::FactorOut(const std::string& stage) {
  HONE_RETURN_IF_ERROR(Do(schedule::FactorOut{stage}));
  return stage + "u";
}

absl::StatusOr<std::string> Sketch::Pack(const std::string& buffer, const std::string& stage,
                                         std::vector<schedule::PackDim> dims) {
  HONE_RETURN_IF_ERROR(Do(schedule::Pack{buffer, stage, std::move(dims)}));
  return buffer + "p" + stage;
}

absl::StatusOr<std::string> Sketch::CacheRead(const std::string& buffer, const std::string& stage) {
  HONE_RETURN_IF_ERROR(Do(schedule::CacheRead{buffer, stage}));
  return buffer + "r" + stage;
}

absl::StatusOr<std::string> Sketch::CacheWrite(const std::string& stage) {
  HONE_RETURN_IF_ERROR(Do(schedule::CacheWrite{stage}));
  return stage + "c";
}

absl::StatusOr<std::string> Sketch::Round(const std::string& buffer, const std::string& stage, int64_t bits) {
  HONE_RETURN_IF_ERROR(Do(schedule::Round{buffer, stage, bits}));
  return buffer + "n" + stage;
}

absl::StatusOr<std::string> Sketch::Recode(const std::string& buffer, const std::string& stage) {
  HONE_RETURN_IF_ERROR(Do(schedule::Recode{buffer, stage}));
  return buffer + "o" + stage;
}

const schedule::Nest& Sketch::Get(const std::string& stage) const {
  const schedule::Nest* nest = state.FindNest(stage);
  HONE_CHECK(nest != nullptr);
  return *nest;
}

int64_t Sketch::MaxExtent(const std::string& loop) { return GetLoop(loop).max_extent; }

}  // namespace hone::space
