// SPDX-License-Identifier: Apache-2.0
// Which rows of a key may go when a person makes room: never the winner, and never what decided that it is one.
//
// The one exception to "append-only", asked for by a person (docs/decisions/0151). Pure; Store::Prune removes. Start at
// Prunable.
#ifndef HONE_RECORDS_PRUNE_H_
#define HONE_RECORDS_PRUNE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "records/winner.h"

namespace hone::records {

// A row goes only if every rule that is set lets it go; with none set, nothing goes.
struct PruneRule {
  std::optional<Instant> before;    // only rows measured before this
  std::optional<size_t> keep_best;  // not the newest timings of this many schedules, the fastest ones
  std::optional<int64_t> keep_row;  // not this one
};

// Indices, in order, of contenders of one key that may go. Without them FindWinner finds the same: final comparisons,
// defaults and failures that speak against a schedule stay, and so does the winner; and where the others would give
// another winner without those that go, none goes.
std::vector<size_t> Prunable(std::span<const Contender> contenders, const PruneRule& rule);

}  // namespace hone::records

#endif  // HONE_RECORDS_PRUNE_H_
