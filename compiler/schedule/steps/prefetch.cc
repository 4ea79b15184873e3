// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

constexpr int64_t kIterationsAheadMax = 64;
constexpr int64_t kComparedIterations = 64;  // iterations that Distance compares

// All loops around the nest's statement, outermost first: those of the nests it is computed in, then its own.
std::vector<Loop> LoopsAround(State& state, const Nest& nest) {
  std::vector<Loop> loops;
  if (!nest.IsTopLevel()) {
    size_t position = 0;
    const Nest& reader = *state.FindLoop(nest.place.loop, &position);
    loops = LoopsAround(state, reader);
    const size_t inside = loops.size() - reader.loops.size() + position + 1;
    loops.resize(inside);
  }
  loops.insert(loops.end(), nest.loops.begin(), nest.loops.end());
  return loops;
}

// The row-major number of the element that the stage reads; undefined if it reads more than one.
ir::Expr ElementRead(const Nest& nest, const ir::Buffer& buffer) {
  ir::Expr element;
  bool two = false;
  ir::ForEachExpr(nest.stage.value, [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    if (load == nullptr || load->buffer != buffer) return;
    ir::Expr flat = ir::Expr(0);
    for (size_t d = 0; d < load->indices.size(); ++d) flat = flat * ir::Expr(buffer->shape[d]) + load->indices[d];
    two = two || (element.defined() && !ir::Equal(flat, element));
    element = flat;
  });
  return two ? ir::Expr() : ir::Substitute(element, nest.bindings);
}

// The distance between the elements that two consecutive iterations read, all other loops being at 0; 0 if it varies.
int64_t Distance(const ir::Expr& element, const Loop& loop) {
  int64_t distance = 0, before = 0;
  for (int64_t i = 0; i < std::min(loop.max_extent, kComparedIterations); ++i) {
    const auto place = ir::ConstantValue(ir::Simplify(ir::Substitute(element, {{loop.name, ir::Expr(i)}})));
    if (!place.has_value() || (i > 1 && *place - before != distance)) return 0;
    distance = *place - before;
    before = *place;
  }
  return loop.max_extent > 1 ? distance : 0;
}

// The iterations of loops over open sizes that prefetch for all.
struct PrefetchingIterations {
  int64_t count = 1;
  ir::Expr number = ir::Expr(0);  // of an iteration among them; `count` or more in the others
};

// A loop with one iteration reads each vector once and is limited by memory bandwidth; prefetches would delay it. So a
// single open loop prefetches from its second iteration on, in three of them, because memory takes two to four
// iterations for the vectors that one reads (decision 0294). If it has fewer, memory limits it anyway. Of several loops
// the first iterations prefetch, because any of them may have only one.
PrefetchingIterations IterationsThatPrefetch(const std::vector<std::string>& loops) {
  if (loops.size() == 1) {
    constexpr int64_t kCount = 3;
    const ir::Expr loop = ir::MakeVar(loops[0]);
    return {kCount, ir::MakeSelect(ir::Equals(loop, ir::Expr(0)), ir::Expr(kCount), loop - ir::Expr(1))};
  }
  PrefetchingIterations first;
  for (const std::string& loop : loops) first.number = first.number + ir::MakeVar(loop);
  return first;
}

absl::StatusOr<PrefetchShare> MakePrefetchShare(State& state, const Nest& nest, const ir::Buffer& buffer,
                                                const Prefetch& step) {
  const std::vector<Loop> loops = LoopsAround(state, nest);
  const auto around = std::ranges::find(loops, step.loop, &Loop::name);
  if (around == loops.end()) {
    return absl::NotFoundError(fmt::format("there is no loop {} around stage {}", step.loop, step.stage));
  }
  const auto serial =
      std::find_if(nest.loops.rbegin() + static_cast<std::ptrdiff_t>(nest.StatementLoops()), nest.loops.rend(),
                   [](const Loop& loop) { return loop.kind == ir::LoopKind::kSerial && loop.max_extent > 1; });
  if (serial == nest.loops.rend() || serial->name == step.loop) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} has no loop inside loop {} that could share the prefetches", step.stage, step.loop));
  }
  const ir::Expr element = ElementRead(nest, buffer);
  if (!element.defined()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} reads {} at two different indices", step.stage, step.buffer));
  }
  ir::VarMap others, inside;
  PrefetchShare share{buffer, serial->name, {}, 0, 1, ir::Expr(0)};
  bool shares = true;
  std::vector<std::string> open;  // loops over open sizes
  for (auto loop = loops.begin(); loop != loops.end(); ++loop) {
    if (loop != around) others[loop->name] = ir::Expr(0);
    if (loop <= around) continue;
    inside[loop->name] = ir::Expr(0);
    const bool constant = loop->extent.As<ir::IntImm>() != nullptr;
    if (shares && !constant && (loop->name == serial->name || !state.IsOpen(loop->extent))) {
      return absl::FailedPreconditionError(fmt::format("loop {} has no constant extent", loop->name));
    }
    if (shares && !constant) open.push_back(loop->name);
    if (shares && constant) {
      share.number = share.number * ir::Expr(loop->max_extent) + ir::MakeVar(loop->name);
      share.shares *= loop->max_extent;
    }
    shares = shares && loop->name != serial->name;
  }
  const PrefetchingIterations iterations = IterationsThatPrefetch(open);
  share.number = share.number + iterations.number * ir::Expr(share.shares);
  share.shares *= iterations.count;
  const int64_t distance = Distance(ir::Substitute(element, others), *around);
  if (distance <= 0) {
    return absl::FailedPreconditionError(
        fmt::format("the address at which stage {} reads {} does not grow by a constant step with loop {}", step.stage,
                    step.buffer, step.loop));
  }
  const int64_t line = ir::kLineBytes / ir::SizeOf(buffer->dtype);
  const int64_t lines = (distance + line - 1) / line;
  share.count = (lines + share.shares - 1) / share.shares * line;
  share.shares = (distance + share.count - 1) / share.count;
  inside[step.loop] = ir::Expr(0);
  share.first = ir::Substitute(element, inside) + (ir::MakeVar(step.loop) + ir::Expr(step.ahead)) * ir::Expr(distance) +
                share.number * ir::Expr(share.count);
  return share;
}

}  // namespace

absl::Status Apply(const Prefetch& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  const ir::Buffer buffer = FindLoadedBuffer(nest->stage, step.buffer);
  if (buffer == nullptr) {
    return absl::FailedPreconditionError(fmt::format("stage {} does not read {}", step.stage, step.buffer));
  }
  if (!IsFixed(state, buffer.get())) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not constant; it may not be computed yet when it is prefetched", step.buffer));
  }
  if (step.ahead < 1 || step.ahead > kIterationsAheadMax) {
    return absl::FailedPreconditionError(
        fmt::format("{} iterations ahead; the number must be from 1 to {}", step.ahead, kIterationsAheadMax));
  }
  HONE_ASSIGN_OR_RETURN(PrefetchShare share, MakePrefetchShare(state, *nest, buffer, step));
  nest->prefetches.push_back(std::move(share));
  return absl::OkStatus();
}

}  // namespace hone::schedule
