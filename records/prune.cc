// SPDX-License-Identifier: Apache-2.0
#include "records/prune.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace hone::records {
namespace {

// The indices of the `count` fastest schedules' newest verified timings.
std::set<size_t> Best(std::span<const Contender> contenders, size_t count) {
  std::map<std::string_view, size_t> newest;
  for (size_t i = 0; i < contenders.size(); ++i) {
    const Contender& c = contenders[i];
    if (!c.verified || c.repeats.empty()) continue;
    const auto [known, added] = newest.try_emplace(c.schedule, i);
    const Contender& other = contenders[known->second];
    if (std::tie(c.measured_at, c.row) > std::tie(other.measured_at, other.row)) known->second = i;
  }
  std::vector<std::pair<double, size_t>> timed;
  for (const auto& [schedule, i] : newest) timed.emplace_back(Median(contenders[i].repeats), i);
  std::sort(timed.begin(), timed.end());
  std::set<size_t> best;
  for (size_t i = 0; i < std::min(count, timed.size()); ++i) best.insert(timed[i].second);
  return best;
}

// Whether the contenders without those of `prunable` (ascending indices) have the winner `winner`.
bool SameWinner(std::span<const Contender> contenders, const std::optional<Winner>& winner,
                const std::vector<size_t>& prunable) {
  std::vector<Contender> staying;
  for (size_t i = 0, next = 0; i < contenders.size(); ++i) {
    if (next < prunable.size() && prunable[next] == i) {
      ++next;
    } else {
      staying.push_back(contenders[i]);
    }
  }
  const std::optional<Winner> then = FindWinner(staying);
  if (then.has_value() != winner.has_value()) return false;
  return !then.has_value() || staying[then->index].row == contenders[winner->index].row;
}

}  // namespace

std::vector<size_t> Prunable(std::span<const Contender> contenders, const PruneRule& rule) {
  if (!rule.before.has_value() && !rule.keep_best.has_value()) return {};
  const std::optional<Winner> winner = FindWinner(contenders);
  const std::set<size_t> best = rule.keep_best.has_value() ? Best(contenders, *rule.keep_best) : std::set<size_t>();
  std::vector<size_t> prunable;
  for (size_t i = 0; i < contenders.size(); ++i) {
    const Contender& c = contenders[i];
    const bool decides = c.confirmed || c.rules_out_schedule || c.is_default;
    const bool wins = winner.has_value() && i == winner->index;
    const bool too_new = rule.before.has_value() && c.measured_at >= *rule.before;
    const bool kept = rule.keep_row == c.row;
    if (!decides && !wins && !too_new && !kept && !best.contains(i)) prunable.push_back(i);
  }
  return SameWinner(contenders, winner, prunable) ? prunable : std::vector<size_t>();
}

}  // namespace hone::records
