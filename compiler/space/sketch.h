// SPDX-License-Identifier: Apache-2.0
// A schedule in the making. Rules (sketch/) and templates (templates/) look at its state, ask its chooser, and take
// steps; space.cc says which follow one another. Private to space/.
#ifndef HONE_COMPILER_SPACE_SKETCH_H_
#define HONE_COMPILER_SPACE_SKETCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/chooser.h"
#include "compiler/target/target.h"

namespace hone::space {

// The loops that result from a split: `outer` counts tiles, `inner` the iterations of one tile.
struct SplitLoops {
  std::string outer, inner;
};

// The axes that result from SplitAxis: `groups` counts groups of elements, `place` the elements of one group.
struct SplitAxes {
  std::string groups, place;
};

// The result of Rfactor: the stage of the partial results, and the reduction axis of the stage that combines them.
struct Partials {
  std::string stage, axis;
};

// A schedule in the making: the state, the steps that led to it, and the target and the chooser for the rules.
//
// Steps that make loops, axes or stages return their names. Rules never derive a name from another.
struct Sketch {
  schedule::State state;
  const target::Target& target;
  Chooser& chooser;
  schedule::Schedule steps;

  // Takes the step. An illegal step is an error that quotes it; the sketch must be thrown away then.
  absl::Status Do(schedule::Step step);
  absl::Status DoAll(const schedule::Schedule& taken);

  // If the loop's extent is open, TailOf takes the place of kShift.
  absl::StatusOr<SplitLoops> Split(const std::string& loop, int64_t factor, schedule::Tail tail);
  // Splits an output axis. If open sizes decide its extent and there may be fewer than 8 tiles: by Tail::kFit.
  // Otherwise as Split does with kShift.
  absl::StatusOr<SplitLoops> SplitFitted(const std::string& loop, int64_t factor);
  // How to treat the last tile of a loop: it overlaps the one before, which needs no condition, if there is always one.
  // Otherwise it is masked, or peeled if an open size decides its length. The loop must exist.
  schedule::Tail TailOf(const std::string& loop, int64_t factor);
  // Whether open sizes decide how many iterations the loop has. The loop must exist.
  bool IsOpen(const std::string& loop);
  // Whether the loop has a multiple of `factor` iterations, whatever the open sizes are. The loop must exist.
  bool HasMultiple(const std::string& loop, int64_t factor);
  // Fuses two loops into one; `inner` must be directly inside `outer`.
  absl::StatusOr<std::string> Fuse(const std::string& outer, const std::string& inner);
  // Fuses at least one loop into one; each must be directly inside the one before it, outermost first.
  absl::StatusOr<std::string> FuseAll(const std::vector<std::string>& loops);
  absl::StatusOr<SplitAxes> SplitAxis(const std::string& stage, const std::string& axis, int64_t factor);
  absl::StatusOr<Partials> Rfactor(const schedule::Rfactor& step);
  // Moves the factors that are constant along the sum out of `stage`. Returns the stage that sums the others.
  absl::StatusOr<std::string> FactorOut(const std::string& stage);
  // Adds a copy of `buffer` in another layout, which `stage` reads.
  absl::StatusOr<std::string> Pack(const std::string& buffer, const std::string& stage,
                                   std::vector<schedule::PackDim> dims);
  // Adds a copy of `buffer` in the same layout, which `stage` reads.
  absl::StatusOr<std::string> CacheRead(const std::string& buffer, const std::string& stage);
  // Adds a stage that computes the values of `stage`; `stage` itself becomes a copy of it.
  absl::StatusOr<std::string> CacheWrite(const std::string& stage);
  // Adds a copy of `buffer` rounded to `bits` fraction bits, which `stage` reads.
  absl::StatusOr<std::string> Round(const std::string& buffer, const std::string& stage, int64_t bits);
  // Adds a copy of `buffer` with the other signedness of 8-bit integers, which `stage` reads.
  absl::StatusOr<std::string> Recode(const std::string& buffer, const std::string& stage);

  const schedule::Nest& Get(const std::string& stage) const;  // the stage must exist
  const schedule::Loop& GetLoop(const std::string& name);     // the loop must exist
  // The most iterations of the loop; their number may depend on outer loops. The loop must exist.
  int64_t MaxExtent(const std::string& loop);
};

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_H_
