// SPDX-License-Identifier: Apache-2.0
#include "records/winner.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "base/confirmation.h"
#include "base/median.h"
#include "base/status.h"

namespace hone::records {
namespace {

// A contender that may win, with its median, which is computed once because many comparisons use it.
struct Candidate {
  const Contender* contender = nullptr;
  double seconds = 0;  // median of contender->repeats
};

bool Newer(const Contender& a, const Contender& b) {
  return std::tie(a.measured_at, a.row) > std::tie(b.measured_at, b.row);
}

// The verified timings that still stand: their schedule has no failure that rules it out at the same instant or later.
std::vector<Candidate> ValidTimings(std::span<const Contender> contenders) {
  std::map<std::string_view, Instant> last_wrong;
  for (const Contender& c : contenders) {
    if (!c.rules_out_schedule) continue;
    const auto [known, added] = last_wrong.try_emplace(c.schedule, c.measured_at);
    if (!added) known->second = std::max(known->second, c.measured_at);
  }
  std::vector<Candidate> valid;
  for (const Contender& c : contenders) {
    if (!c.verified || c.repeats.empty()) continue;
    const auto wrong = last_wrong.find(c.schedule);
    if (wrong == last_wrong.end() || wrong->second < c.measured_at) valid.push_back({&c, Median(c.repeats)});
  }
  return valid;
}

// The newest candidate of each schedule. Older ones are dropped, because a lucky measurement must not count against
// later ones.
std::vector<Candidate> NewestOfEachSchedule(const std::vector<Candidate>& candidates) {
  std::map<std::string_view, Candidate> newest;
  for (const Candidate& c : candidates) {
    const auto [known, added] = newest.try_emplace(c.contender->schedule, c);
    if (!added && Newer(*c.contender, *known->second.contender)) known->second = c;
  }
  std::vector<Candidate> result;
  for (const auto& [schedule, candidate] : newest) result.push_back(candidate);
  return result;
}

// Whether the challenger beats the default schedule `default_candidate` of its own batch. Its median must be smaller.
// If both have interleaved repeats, the pairs of one round must agree: the median of their ratios, and the share of
// rounds won. Each of the three conditions alone can be met by luck.
bool BeatsDefaultOfBatch(const Candidate& challenger, const Candidate& default_candidate) {
  if (challenger.seconds >= kDefaultShareMax * default_candidate.seconds) return false;
  if (!challenger.contender->interleaved || !default_candidate.contender->interleaved) return true;
  const std::vector<double>& a = challenger.contender->repeats;
  const std::vector<double>& b = default_candidate.contender->repeats;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  const auto won = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio < 1; });
  if (static_cast<double>(won) < kRoundsWonShareMin * static_cast<double>(ratios.size())) return false;
  return Median(std::move(ratios)) < kDefaultShareMax;
}

// Whether the challenger beats the default schedule `default_candidate` of another visit. If the device's reference
// kernel has become faster since then, the challenger's time is raised by that factor. If it has become slower, the
// time is not lowered: other kernels may depend on other parts of the device, which need not have become slower.
bool BeatsDefaultOfOtherVisit(const Candidate& challenger, const Candidate& default_candidate) {
  const double now = challenger.contender->reference_seconds, then = default_candidate.contender->reference_seconds;
  const double faster = now > 0 && then > 0 ? std::max(1.0, then / now) : 1;
  return challenger.seconds * faster < kOtherVisitDefaultShareMax * default_candidate.seconds;
}

// The default schedule's newest timing in each batch, and in all batches.
struct Defaults {
  std::map<std::string_view, Candidate> of_batch;
  Candidate newest;  // contender is null if there is no default
};

Defaults DefaultsOf(const std::vector<Candidate>& candidates) {
  Defaults defaults;
  const auto take = [](const Candidate& c, Candidate& known) {
    if (known.contender == nullptr || Newer(*c.contender, *known.contender)) known = c;
  };
  for (const Candidate& c : candidates) {
    if (!c.contender->is_default) continue;
    take(c, defaults.of_batch[c.contender->batch]);
    take(c, defaults.newest);
  }
  return defaults;
}

// Whether the candidate fails to beat the default of its batch, or, if its batch has none, the newest default. False
// for a default, and if there is no default.
bool LosesToDefault(const Candidate& candidate, const Defaults& defaults) {
  if (candidate.contender->is_default || defaults.newest.contender == nullptr) return false;
  const auto beside = defaults.of_batch.find(candidate.contender->batch);
  return beside != defaults.of_batch.end() ? !BeatsDefaultOfBatch(candidate, beside->second)
                                           : !BeatsDefaultOfOtherVisit(candidate, defaults.newest);
}

// The fastest candidate that does not lose to a default (LosesToDefault); a default itself never loses. On a tie the
// earlier row. If every candidate loses, the newest default, because the candidates did not beat it. `candidates` must
// not be empty.
Candidate Fastest(const std::vector<Candidate>& candidates, const Defaults& defaults) {
  Candidate best;
  for (const Candidate& c : candidates) {
    if (LosesToDefault(c, defaults)) continue;
    const bool better = best.contender == nullptr ||
                        std::tie(c.seconds, c.contender->row) < std::tie(best.seconds, best.contender->row);
    if (better) best = c;
  }
  return best.contender != nullptr ? best : defaults.newest;
}

// The confirmed candidates of the newest batch that has the default and another schedule. If there is no such batch,
// those of the newest batch that has a schedule other than the default; empty if there is none of these either.
// Earlier confirmations do not count: the device may have been faster or slower, and a tuner takes their winner into
// the next one. A batch that was cut short may lack the default.
std::vector<Candidate> NewestConfirmation(const std::vector<Candidate>& candidates) {
  struct Batch {
    bool with_default = false, with_others = false;
    const Contender* newest = nullptr;
    std::vector<Candidate> candidates;
  };
  std::map<std::string_view, Batch> batches;
  for (const Candidate& c : candidates) {
    if (!c.contender->confirmed) continue;
    Batch& batch = batches[c.contender->batch];
    (c.contender->is_default ? batch.with_default : batch.with_others) = true;
    if (batch.newest == nullptr || Newer(*c.contender, *batch.newest)) batch.newest = c.contender;
    batch.candidates.push_back(c);
  }
  const Batch* best = nullptr;
  for (const auto& [name, batch] : batches) {
    if (!batch.with_others) continue;
    const bool better =
        best == nullptr ||
        (batch.with_default != best->with_default ? batch.with_default : Newer(*batch.newest, *best->newest));
    if (better) best = &batch;
  }
  return best == nullptr ? std::vector<Candidate>() : best->candidates;
}

// The candidates that were timed at the sizes of the newest one, because others are not comparable.
std::vector<Candidate> AtNewestSizes(const std::vector<Candidate>& candidates) {
  const Candidate& newest = *std::ranges::max_element(
      candidates, [](const Candidate& a, const Candidate& b) { return Newer(*b.contender, *a.contender); });
  std::vector<Candidate> result;
  std::ranges::copy_if(candidates, std::back_inserter(result),
                       [&](const Candidate& c) { return c.contender->sizes == newest.contender->sizes; });
  return result;
}

// The steps by which the winner is found; docs/RECORDS.md explains them. Each list is a part of the one before it.
struct Comparison {
  std::vector<Candidate> valid;  // verified timings whose schedule is not ruled out
  // Those of the newest confirmation, else those at the sizes of the newest timing; empty: there is no winner.
  std::vector<Candidate> field;
  std::vector<Candidate> newest;  // the newest of each schedule
  Defaults defaults;              // of `field`
  Candidate best;                 // the winner; contender is null if `field` is empty
  bool confirmed = false;         // `field` is a confirmation, not races
};

Comparison Compare(std::span<const Contender> contenders) {
  Comparison comparison;
  comparison.valid = ValidTimings(contenders);
  if (comparison.valid.empty()) return comparison;
  comparison.field = NewestConfirmation(comparison.valid);
  comparison.confirmed = !comparison.field.empty();
  if (comparison.field.empty()) comparison.field = AtNewestSizes(comparison.valid);
  comparison.defaults = DefaultsOf(comparison.field);
  comparison.newest = NewestOfEachSchedule(comparison.field);
  comparison.best = Fastest(comparison.newest, comparison.defaults);
  return comparison;
}

}  // namespace

bool RulesOutSchedule(FailureKind kind) {
  switch (kind) {
    case FailureKind::kCrashed:
    case FailureKind::kWrongOutput:
    case FailureKind::kOutOfBoundsWrite:
    case FailureKind::kForbiddenCall:
    case FailureKind::kImpossibleTime:
      return true;
    case FailureKind::kScheduleIllegal:
    case FailureKind::kCompileError:
    case FailureKind::kCompileTimeout:
    case FailureKind::kRunTimeout:
    case FailureKind::kLostDevice:
      return false;
  }
  return false;
}

bool HasInterleavedRounds(size_t repeats, int64_t first_interleaved) {
  return static_cast<int64_t>(repeats) - first_interleaved >= kInterleavedRoundsMin;
}

std::span<const double> DecidingRepeats(std::span<const double> seconds, int64_t first_interleaved) {
  const bool some = first_interleaved > 0 && HasInterleavedRounds(seconds.size(), first_interleaved);
  return some ? seconds.subspan(static_cast<size_t>(first_interleaved)) : seconds;
}

void SetRepeats(Contender& contender, std::span<const double> seconds, int64_t first_interleaved) {
  const std::span<const double> counting = DecidingRepeats(seconds, first_interleaved);
  contender.repeats.assign(counting.begin(), counting.end());
  contender.interleaved = HasInterleavedRounds(seconds.size(), first_interleaved);
  contender.confirmed = contender.confirmed && contender.interleaved;
}

Contender ContenderOf(const StoredRecord& stored) {
  const Record& record = stored.record;
  Contender contender{.row = stored.row,
                      .schedule = record.schedule,
                      .batch = record.batch_id,
                      .sizes = record.sizes,
                      .measured_at = record.measured_at,
                      .is_default = record.is_default};
  if (const auto* failure = std::get_if<Failure>(&record.outcome)) {
    contender.rules_out_schedule = RulesOutSchedule(failure->kind);
    return contender;
  }
  const auto& timing = std::get<Timing>(record.outcome);
  contender.verified = timing.verified;
  contender.confirmed = timing.confirmed;
  contender.reference_seconds = timing.reference_seconds.value_or(0);
  SetRepeats(contender, timing.seconds, timing.first_interleaved);
  return contender;
}

std::optional<Winner> FindWinner(std::span<const Contender> contenders) {
  const Comparison comparison = Compare(contenders);
  if (comparison.field.empty()) return std::nullopt;
  const Candidate& best = comparison.best;
  Winner winner{.index = static_cast<size_t>(best.contender - contenders.data()),
                .seconds = best.seconds,
                .confirmed = comparison.confirmed};
  const std::map<std::string_view, Candidate>& defaults = comparison.defaults.of_batch;
  const auto default_candidate = defaults.find(best.contender->batch);
  if (default_candidate != defaults.end()) winner.default_seconds = default_candidate->second.seconds;
  return winner;
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWinner:
      return "winner";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kNotBetterThanDefault:
      return "not_better_than_default";
    case Verdict::kMeasuredAgain:
      return "measured_again";
    case Verdict::kNotCompared:
      return "not_compared";
    case Verdict::kCondemned:
      return "condemned";
    case Verdict::kUnverified:
      return "unverified";
    case Verdict::kFailed:
      return "failed";
  }
  HONE_CHECK(!"a verdict without a name");
  return {};
}

std::vector<Verdict> Explain(std::span<const Contender> contenders) {
  std::vector<Verdict> verdicts;
  for (const Contender& c : contenders) {
    verdicts.push_back(c.repeats.empty() ? Verdict::kFailed : c.verified ? Verdict::kCondemned : Verdict::kUnverified);
  }
  const auto judge = [&](const std::vector<Candidate>& candidates, Verdict verdict) {
    for (const Candidate& c : candidates) verdicts[static_cast<size_t>(c.contender - contenders.data())] = verdict;
  };
  const Comparison comparison = Compare(contenders);
  judge(comparison.valid, Verdict::kNotCompared);
  judge(comparison.field, Verdict::kMeasuredAgain);
  for (const Candidate& c : comparison.newest) {
    judge({c}, LosesToDefault(c, comparison.defaults) ? Verdict::kNotBetterThanDefault : Verdict::kSlower);
  }
  if (!comparison.field.empty()) judge({comparison.best}, Verdict::kWinner);
  return verdicts;
}

}  // namespace hone::records
