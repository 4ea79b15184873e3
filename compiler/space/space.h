// SPDX-License-Identifier: Apache-2.0
// The spaces: what may be tried for a workload on a target. A table of entries; the decision "space" chooses among
// those that apply.
//
// templates/ has the spaces written by hand for an operator, sketch/ those derived by rules for any workload. Every
// workload has a sketch space on every target.
#ifndef HONE_COMPILER_SPACE_SPACE_H_
#define HONE_COMPILER_SPACE_SPACE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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
  // Whether it should be preferred to those after it, where it applies; null: always.
  bool (*pays)(const ir::Workload& workload, const target::Target& target);
  absl::Status (*build)(const ir::Workload& workload, Sketch& sketch);
};

// All of them, templates first; static.
std::span<const Entry> Entries();

// Which entries a search may choose from: those of one family, or all (nullopt).
using Families = std::optional<Family>;
// "all", "template" or "sketch"; InvalidArgument for anything else.
absl::StatusOr<Families> ParseFamilies(std::string_view text);

// Those that apply, the default first; static.
std::vector<const Entry*> Fitting(const ir::Workload& workload, const target::Target& target, Families families = {});
// Of which entry these decisions are, if it is one of the given; null if they name another.
const Entry* EntryOf(const Decisions& decisions, std::span<const Entry* const> entries);
// The decision that names an entry by its id. It is asked for wherever several apply, whatever the families.
inline constexpr std::string_view kSpaceDecision = "space";

// Asks the chooser and writes the schedule. FailedPrecondition if these decisions lead nowhere (too much local
// storage, an illegal step): a normal event in a search, never one for the preferred decisions. Also if no entry of the
// families applies. `fitting` is what Fitting says of workload and target, found out once for all candidates.
absl::StatusOr<Candidate> Build(const ir::Workload& workload, const target::Target& target,
                                std::span<const Entry* const> fitting, Chooser& chooser, Families families = {});

// Of each entry of the families that fits, the candidate that it prefers given the hint, where there is one. Which
// reduction the hint is for its extents say; of another workload's, it changes nothing.
std::vector<Decisions> Hinted(const ir::Workload& workload, const target::Target& target, const TileHint& hint,
                              Families families = {});

// The untuned default: every decision as preferred, of all families.
absl::StatusOr<Candidate> Default(const ir::Workload& workload, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SPACE_H_
