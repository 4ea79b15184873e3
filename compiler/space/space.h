// The spaces: what may be tried for a workload. One function; which template or rules apply is decided inside.
//
// templates/ has the spaces written by hand for an operator, sketch/ the one derived by rules for any workload.
// Every workload has the sketch space; a decision "space" chooses between it and a template that fits.
#ifndef HONE_COMPILER_SPACE_SPACE_H_
#define HONE_COMPILER_SPACE_SPACE_H_

#include "absl/status/status.h"
#include "compiler/codegen/target.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/chooser.h"

namespace hone::space {

// A schedule with the state it leads to (so that nobody replays it twice) and the decisions it came from.
struct Candidate {
  Decisions decisions;
  schedule::Schedule schedule;
  schedule::State state;
};

// Asks the chooser and writes the schedule. FailedPrecondition if these decisions lead nowhere (too much local
// storage, an illegal step): a normal event in a search, never one for the preferred decisions.
absl::StatusOr<Candidate> Build(const ir::Workload& workload, const codegen::Target& target, Chooser& chooser);

// The untuned default: every decision as preferred.
absl::StatusOr<Candidate> Default(const ir::Workload& workload, const codegen::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SPACE_H_
