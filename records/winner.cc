#include "records/winner.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "base/median.h"
#include "base/status.h"

namespace hone::records {
namespace {

// A contender that may win, with its median, which is asked for again and again.
struct Candidate {
  const Contender* contender = nullptr;
  double seconds = 0;
};

bool Newer(const Contender& a, const Contender& b) {
  return std::tie(a.measured_at, a.row) > std::tie(b.measured_at, b.row);
}

// The verified timings whose schedule did nothing wrong at that instant or later.
std::vector<Candidate> Standing(std::span<const Contender> contenders) {
  std::map<std::string_view, Instant> last_wrong;
  for (const Contender& c : contenders) {
    if (!c.wrong) continue;
    const auto [known, added] = last_wrong.try_emplace(c.schedule, c.measured_at);
    if (!added) known->second = std::max(known->second, c.measured_at);
  }
  std::vector<Candidate> standing;
  for (const Contender& c : contenders) {
    if (!c.verified || c.repeats.empty()) continue;
    const auto wrong = last_wrong.find(c.schedule);
    if (wrong == last_wrong.end() || wrong->second < c.measured_at) standing.push_back({&c, Median(c.repeats)});
  }
  return standing;
}

// Of each schedule the newest one only: a lucky measurement must not stand against later ones.
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

// Both by the medians, and repeat by repeat where they were taken in turns: of two of that kind each alone can be luck.
bool Beats(const Candidate& challenger, const Candidate& standard) {
  if (challenger.seconds >= kWorthwhile * standard.seconds) return false;
  if (!challenger.contender->in_turns || !standard.contender->in_turns) return true;
  const std::vector<double>& a = challenger.contender->repeats;
  const std::vector<double>& b = standard.contender->repeats;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return Median(std::move(ratios)) < kWorthwhile;
}

using Defaults = std::map<std::string_view, Candidate>;  // by batch

Defaults DefaultsOf(const std::vector<Candidate>& candidates) {
  Defaults defaults;
  for (const Candidate& c : candidates) {
    if (!c.contender->is_default) continue;
    const auto [known, added] = defaults.try_emplace(c.contender->batch, c);
    if (!added && Newer(*c.contender, *known->second.contender)) known->second = c;
  }
  return defaults;
}

bool LosesToDefault(const Candidate& candidate, const Defaults& defaults) {
  const auto standard = defaults.find(candidate.contender->batch);
  return standard != defaults.end() && !candidate.contender->is_default && !Beats(candidate, standard->second);
}

// The fastest of those that beat the default of their own batch; a default needs to beat nobody. On a tie the earlier
// row. Where none is left, the newest default: it is what the others did not beat. `candidates` is not empty.
Candidate Fastest(const std::vector<Candidate>& candidates, const Defaults& defaults) {
  Candidate best;
  for (const Candidate& c : candidates) {
    if (LosesToDefault(c, defaults)) continue;
    const bool better = best.contender == nullptr ||
                        std::tie(c.seconds, c.contender->row) < std::tie(best.seconds, best.contender->row);
    if (better) best = c;
  }
  if (best.contender != nullptr) return best;
  for (const auto& [batch, standard] : defaults) {
    if (best.contender == nullptr || Newer(*standard.contender, *best.contender)) best = standard;
  }
  return best;
}

// The confirmed ones of the newest batch that compared somebody with the default, else of the newest that compared
// somebody; empty if none did. Earlier confirmations saw the device on another day, and a tuner takes the winner of
// those into the next one. A batch cut short may lack some.
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

// How the winner was found, step by step; docs/RECORDS.md has the steps in words.
struct Comparison {
  std::vector<Candidate> standing;  // what may win at all
  std::vector<Candidate> field;     // of these the ones that are compared; empty: there is no winner
  std::vector<Candidate> newest;    // of these the newest of each schedule
  Defaults defaults;
  Candidate best;
  bool confirmed = false;
};

Comparison Compare(std::span<const Contender> contenders) {
  Comparison comparison;
  comparison.standing = Standing(contenders);
  if (comparison.standing.empty()) return comparison;
  comparison.field = NewestConfirmation(comparison.standing);
  comparison.confirmed = !comparison.field.empty();
  if (comparison.field.empty()) comparison.field = comparison.standing;
  comparison.defaults = DefaultsOf(comparison.field);
  comparison.newest = NewestOfEachSchedule(comparison.field);
  comparison.best = Fastest(comparison.newest, comparison.defaults);
  return comparison;
}

}  // namespace

bool SpeaksAgainst(FailureKind kind) {
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

std::span<const double> CountingRepeats(std::span<const double> seconds, int64_t first_interleaved) {
  const bool in_turns = first_interleaved > 0 && static_cast<size_t>(first_interleaved) < seconds.size();
  return in_turns ? seconds.subspan(static_cast<size_t>(first_interleaved)) : seconds;
}

void SetRepeats(Contender& contender, std::span<const double> seconds, int64_t first_interleaved) {
  const std::span<const double> counting = CountingRepeats(seconds, first_interleaved);
  contender.repeats.assign(counting.begin(), counting.end());
  contender.in_turns = first_interleaved < static_cast<int64_t>(seconds.size());
}

Contender ContenderOf(const StoredRecord& stored) {
  const Record& record = stored.record;
  Contender contender{.row = stored.row,
                      .schedule = record.schedule,
                      .batch = record.batch_id,
                      .measured_at = record.measured_at,
                      .is_default = record.is_default};
  if (const auto* failure = std::get_if<Failure>(&record.outcome)) {
    contender.wrong = SpeaksAgainst(failure->kind);
    return contender;
  }
  const auto& timing = std::get<Timing>(record.outcome);
  contender.verified = timing.verified;
  contender.confirmed = timing.confirmed;
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
  const auto standard = comparison.defaults.find(best.contender->batch);
  if (standard != comparison.defaults.end()) winner.default_seconds = standard->second.seconds;
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
  judge(comparison.standing, Verdict::kNotCompared);
  judge(comparison.field, Verdict::kMeasuredAgain);
  for (const Candidate& c : comparison.newest) {
    judge({c}, LosesToDefault(c, comparison.defaults) ? Verdict::kNotBetterThanDefault : Verdict::kSlower);
  }
  if (!comparison.field.empty()) judge({comparison.best}, Verdict::kWinner);
  return verdicts;
}

}  // namespace hone::records
