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

// A schedule, the decisions that it came from, and the state that it leads to, so that callers need not replay it.
struct Candidate {
  Decisions decisions;
  schedule::Schedule schedule;
  schedule::State state;
};

enum class Family : uint8_t { kTemplate, kSketch };

// One space: an entry of the table in space.cc (docs/howto/add-a-space.md).
struct Entry {
  int64_t id;  // the space's value of the decision "space"
  std::string_view name;
  Family family;
  bool binds_grid;  // it binds loops to groups and lanes, so it is for targets with a grid; else for all others
  bool (*applies)(const ir::Workload& workload, const target::Target& target);
  // Whether the space should be preferred to the entries after it, for workloads to which it applies; null: always.
  bool (*preferred)(const ir::Workload& workload, const target::Target& target);
  absl::Status (*build)(const ir::Workload& workload, Sketch& sketch);
};

// Which entries a search may choose from: those of one family, or all (nullopt).
using Families = std::optional<Family>;
// "all", "template" or "sketch"; InvalidArgument for anything else.
absl::StatusOr<Families> ParseFamilies(std::string_view text);

// The entries that apply, the default first.
std::vector<const Entry*> ApplicableEntries(const ir::Workload& workload, const target::Target& target,
                                            Families families = {});
// The entry that produced these decisions; null if it is not in `entries`. Decisions without a "space" belong to the
// only entry; they are null if `entries` has several.
const Entry* EntryOf(const Decisions& decisions, std::span<const Entry* const> entries);
// The decision that names an entry by its id. A candidate has it exactly if several entries apply to the workload, even
// if the families leave only one of them to choose from.
inline constexpr std::string_view kSpaceDecision = "space";

// Asks the chooser and writes the schedule. `fitting` must be ApplicableEntries(workload, target); callers compute it
// once for all candidates. FailedPrecondition if no entry of the families applies, or if the decisions lead to an
// illegal step or to too much memory. The latter is normal in a search. With the preferred decisions it is a bug of a
// rule, and Default then tries the next entry. Build does not lower the schedule, so execution::Lower may still refuse
// it.
absl::StatusOr<Candidate> Build(const ir::Workload& workload, const target::Target& target,
                                std::span<const Entry* const> fitting, Chooser& chooser, Families families = {});

// The decisions that each applying entry of the families prefers, given the hint. Entries for which Build fails with
// them are left out; nothing is lowered. A hint for other extents than those of the workload's reductions changes
// nothing.
std::vector<Decisions> Hinted(const ir::Workload& workload, const target::Target& target, const TileHint& hint,
                              Families families = {});

// The untuned default: the preferred decisions of the first entry that can be lowered with them. If there is none, a
// naive schedule without decisions, and a warning. It lowers the default of each entry that it tries, normally only
// one.
absl::StatusOr<Candidate> Default(const ir::Workload& workload, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SPACE_H_
