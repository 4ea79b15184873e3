// SPDX-License-Identifier: Apache-2.0
// Decides which rows of a key may be removed when a user prunes: never the winner, and never the rows that made it one.
//
// Pruning is the only exception to "append-only", and only a user asks for it (docs/decisions/0151). Pure; Store::Prune
// removes the rows. Start at Prunable.
#ifndef HONE_RECORDS_PRUNE_H_
#define HONE_RECORDS_PRUNE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "records/winner.h"

namespace hone::records {

// A row may be removed only if every rule that is set allows it. If neither `before` nor `keep_best` is set, none may.
struct PruneRule {
  std::optional<Instant> before;  // only rows measured before this
  // Keeps the newest verified timing of each of this many schedules, the ones where that timing is the fastest.
  std::optional<size_t> keep_best;
  std::optional<int64_t> keep_row;  // not this one
};

// The indices, in order, of the contenders of one key that may be removed. FindWinner finds the same winner without
// them: final comparisons, defaults, failures that speak against a schedule, and the winner stay. If removing the
// others would still change the winner, the result is empty.
std::vector<size_t> Prunable(std::span<const Contender> contenders, const PruneRule& rule);

}  // namespace hone::records

#endif  // HONE_RECORDS_PRUNE_H_
