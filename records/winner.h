// SPDX-License-Identifier: Apache-2.0
// The winner of a workload: which record of one key to use, and what it was compared with. Defined here and nowhere
// else; docs/RECORDS.md, "Which record is best", tells it to people.
//
// Pure: values in, a value out. Store (store.h) hands in the rows of a key, a tuner the finalists it has just
// confirmed. Not here: which key to ask when the exact one has no record (Store::BestAnyDevice). Start at FindWinner.
#ifndef HONE_RECORDS_WINNER_H_
#define HONE_RECORDS_WINNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "records/record.h"

namespace hone::records {

// A share of the default's time: what takes more is not worth another schedule.
inline constexpr double kWorthwhile = 0.995;
// The same of a default that was timed in another visit: between two visits a device becomes faster or slower.
inline constexpr double kWorthwhileApart = 0.9;
// Of the pairs of repeats that were taken in turns, the share in which the better schedule must have taken less time.
inline constexpr double kMostPairs = 0.75;

// What deciding needs of a record.
struct Contender {
  int64_t row = 0;  // of two measured at the same instant, the one with the larger row is newer
  std::string schedule;
  std::string batch;  // the contenders of one device visit share it
  Instant measured_at{};
  bool is_default = false;       // the schedule that nobody had to search for
  bool verified = false;         // timed, and its output was right
  bool confirmed = false;        // in a final comparison of enough turns
  bool wrong = false;            // failed in a way that speaks against the schedule: see SpeaksAgainst
  bool in_turns = false;         // repeats[k] was taken beside repeats[k] of the others of its batch
  std::vector<double> repeats;   // those that count; empty for a failure
  double reference_seconds = 0;  // of the device's reference kernel in the same visit; 0: not known
};

Contender ContenderOf(const StoredRecord& stored);

// Sets `repeats` and `in_turns`, and clears `confirmed` where there were too few turns; the arguments are as in Timing.
void SetRepeats(Contender& contender, std::span<const double> seconds, int64_t first_interleaved);

// Whether a schedule that failed so must not be used: a wrong output, a write out of bounds, a crash, a forbidden call,
// an impossible time.
bool SpeaksAgainst(FailureKind kind);

// Whether enough of so many repeats were taken in turns to compare anything. first_interleaved: as in Timing.
bool TakenInTurns(size_t repeats, int64_t first_interleaved);

// The repeats to judge by: those taken in turns, since they saw the same machine as the others' did; all, if too few
// were. A view into `seconds`.
std::span<const double> CountingRepeats(std::span<const double> seconds, int64_t first_interleaved);

struct Winner {
  size_t index = 0;                       // in the contenders
  double seconds = 0;                     // median of its repeats that count
  std::optional<double> default_seconds;  // of the default schedule, measured in the same batch
  bool confirmed = false;                 // it won a confirmation: with default_seconds, one with the default
};

// Among the contenders of one key, in any order. Those that are confirmed or wrong are enough if a confirmed winner
// comes out. Nothing: no verified timing that still stands.
std::optional<Winner> FindWinner(std::span<const Contender> contenders);

// What became of a contender when the winner was looked for.
enum class Verdict {
  kWinner,
  kSlower,                // than the winner, by the same comparison
  kNotBetterThanDefault,  // that of its batch, else the newest
  kMeasuredAgain,         // a later timing of its schedule counts
  kNotCompared,           // it was not in the newest final comparison, which decides alone
  kCondemned,             // its schedule did wrong at that time or later
  kUnverified,
  kFailed,
};
inline constexpr std::array kAllVerdicts = {
    Verdict::kWinner,      Verdict::kSlower,    Verdict::kNotBetterThanDefault, Verdict::kMeasuredAgain,
    Verdict::kNotCompared, Verdict::kCondemned, Verdict::kUnverified,           Verdict::kFailed};
std::string_view VerdictName(Verdict verdict);  // "not_better_than_default"

// For each contender, in their order, why it is not what FindWinner finds, or that it is.
std::vector<Verdict> Explain(std::span<const Contender> contenders);

}  // namespace hone::records

#endif  // HONE_RECORDS_WINNER_H_
