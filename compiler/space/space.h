// The spaces: what may be tried for a workload on a target. A table of entries; the decision "space" chooses among
// those that apply.
//
// templates/ has the spaces written by hand for an operator, sketch/ those derived by rules for any workload. Every
// workload has a sketch space on every target.
#ifndef HONE_COMPILER_SPACE_SPACE_H_
#define HONE_COMPILER_SPACE_SPACE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/chooser.h"
#include "compiler/target/target.h"

namespace hone::space {

struct Sketch;

// A schedule with the state it leads to (so that nobody replays it twice) and the decisions it came from.
struct Candidate {
  Decisions decisions;
  schedule::Schedule schedule;
  schedule::State state;
};

enum class Family : uint8_t { kTemplate, kSketch };

// One space: an entry of the table in space.cc. A new one is a file of its own and a line there (docs/howto).
struct Entry {
  int64_t id;  // its value of the decision "space"
  std::string_view name;
  Family family;
  bool (*applies)(const ir::Workload& workload, const target::Target& target);
  absl::Status (*build)(const ir::Workload& workload, Sketch& sketch);
};

// All of them, templates first; static.
std::span<const Entry> Entries();

// Asks the chooser and writes the schedule. FailedPrecondition if these decisions lead nowhere (too much local
// storage, an illegal step): a normal event in a search, never one for the preferred decisions.
absl::StatusOr<Candidate> Build(const ir::Workload& workload, const target::Target& target, Chooser& chooser);

// The untuned default: every decision as preferred.
absl::StatusOr<Candidate> Default(const ir::Workload& workload, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SPACE_H_
