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

// The loops that a split leaves: `outer` counts tiles, `inner` the iterations of one tile.
struct SplitLoops {
  std::string outer, inner;
};

// The axes that SplitAxis leaves of one axis: `groups` counts groups of elements, `place` the elements of one group.
struct SplitAxes {
  std::string groups, place;
};

// What Rfactor leaves: the stage of the partial results, and the axis of the reduction that is left to the stage.
struct Partials {
  std::string stage, axis;
};

// A schedule in the making: the state, the steps that led to it, and what the rules choose with.
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

  absl::StatusOr<SplitLoops> Split(const std::string& loop, int64_t factor, schedule::Tail tail);
  // One loop of two, `inner` directly inside `outer`.
  absl::StatusOr<std::string> Fuse(const std::string& outer, const std::string& inner);
  // One loop of these, each directly inside the one before it, outermost first; at least one.
  absl::StatusOr<std::string> FuseAll(const std::vector<std::string>& loops);
  absl::StatusOr<SplitAxes> SplitAxis(const std::string& stage, const std::string& axis, int64_t factor);
  absl::StatusOr<Partials> Rfactor(const schedule::Rfactor& step);
  // The copy of `buffer` in another layout, which `stage` reads.
  absl::StatusOr<std::string> Pack(const std::string& buffer, const std::string& stage,
                                   std::vector<schedule::PackDim> dims);
  // The copy of `buffer` as it is, which `stage` reads.
  absl::StatusOr<std::string> CacheRead(const std::string& buffer, const std::string& stage);
  // The stage that computes what `stage`, which becomes a copy of it, did before.
  absl::StatusOr<std::string> CacheWrite(const std::string& stage);
  // The rounded copy of `buffer`, which `stage` reads.
  absl::StatusOr<std::string> Round(const std::string& buffer, const std::string& stage, int64_t bits);
  // The copy of `buffer` as another type, which `stage` reads.
  absl::StatusOr<std::string> Recode(const std::string& buffer, const std::string& stage);

  const schedule::Nest& Get(const std::string& stage) const;  // the stage must exist
  int64_t MaxExtent(const std::string& loop);                 // the loop must exist
};

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_H_
