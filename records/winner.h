// SPDX-License-Identifier: Apache-2.0
// Decides the winner of a key: which of its records to use, and why each other one lost. No other code decides this.
// docs/RECORDS.md, "Which record is best", states the rules for users.
//
// Pure: values in, a value out. A Store (store.h) passes the rows of a key; a tuner passes the finalists that it has
// just confirmed. Not here: which key to ask if the exact one has no record (Store::BestAnyDevice). Start at
// FindWinner.
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

// A schedule beats the default of its own batch only if it takes less than this share of the default's time. A smaller
// gain is not worth another schedule.
inline constexpr double kDefaultShareMax = 0.995;
// The same share if the default was timed in another visit. It is smaller, because the speed of a device changes
// between two visits. If the reference kernel shows that the device was slower when the default was timed, the
// schedule's time is first raised by that factor.
inline constexpr double kOtherVisitDefaultShareMax = 0.9;
// Two schedules that were timed in interleaved rounds have one pair of repeats for each round. The better schedule must
// have taken less time in at least this share of the pairs.
inline constexpr double kRoundsWonShareMin = 0.75;

// The values of a record that decide the winner.
struct Contender {
  int64_t row = 0;  // if two have the same measured_at, the one with the larger row is newer
  std::string schedule;
  std::string batch;  // equal for the contenders of one device visit
  std::string sizes;  // Record::sizes
  Instant measured_at{};
  bool is_default = false;          // the default schedule, which needs no search
  bool verified = false;            // a timing whose output agreed with the reference
  bool confirmed = false;           // timed in a final comparison of at least kInterleavedRoundsMin interleaved rounds
  bool rules_out_schedule = false;  // a failure that rules out its schedule: see RulesOutSchedule
  bool interleaved = false;         // repeats[k] was taken in the same round as repeats[k] of the others of its batch
  std::vector<double> repeats;      // seconds, as DecidingRepeats chooses them; empty for a failure
  double reference_seconds = 0;     // time of the device's reference kernel in the same visit; 0: not known
};

Contender ContenderOf(const StoredRecord& stored);

// Sets `repeats` and `interleaved`. Clears `confirmed` if fewer than kInterleavedRoundsMin repeats were interleaved.
// The arguments are the members of Timing with these names.
void SetRepeats(Contender& contender, std::span<const double> seconds, int64_t first_interleaved);

// Whether a failure of this kind rules out its schedule: the schedule must not be used, even if an earlier timing was
// good. True for a wrong output, a write out of bounds, a crash, a forbidden call and an impossible time.
bool RulesOutSchedule(FailureKind kind);

// Whether at least kInterleavedRoundsMin of the repeats were interleaved; with fewer, schedules are not compared round
// by round. first_interleaved: as in Timing.
bool HasInterleavedRounds(size_t repeats, int64_t first_interleaved);

// The repeats that decide: the interleaved ones, because the other finalists were timed under the same conditions. If
// fewer than kInterleavedRoundsMin were interleaved, all repeats. The result is a view into `seconds`.
std::span<const double> DecidingRepeats(std::span<const double> seconds, int64_t first_interleaved);

struct Winner {
  size_t index = 0;                       // in the contenders
  double seconds = 0;                     // median of its `repeats`
  std::optional<double> default_seconds;  // median of the default in the same batch; empty: the batch has none
  bool confirmed = false;  // won the final comparison that decides; it had the default if default_seconds is set
};

// The winner among the contenders of one key, in any order. Empty: every verified timing was ruled out, or there is
// none. If a final comparison exists, only the newest one counts; one that includes the default goes before all that
// lack it. A final comparison without a schedule other than the default does not count. A caller may first pass only
// the contenders with `confirmed` or `rules_out_schedule`: if their winner is confirmed, the others cannot change it.
std::optional<Winner> FindWinner(std::span<const Contender> contenders);

// Why a contender won or lost.
enum class Verdict {
  kWinner,
  kSlower,                // slower than the winner in the same comparison
  kNotBetterThanDefault,  // did not beat the default of its batch; without one, the newest default
  kMeasuredAgain,         // a newer timing of its schedule counts instead
  kNotCompared,           // not in the final comparison that decides (FindWinner)
  kCondemned,             // its schedule failed as RulesOutSchedule says, at that instant or later
  kUnverified,            // the timing's output was not compared with a reference
  kFailed,                // a failure, so there is no timing
};
inline constexpr std::array kAllVerdicts = {
    Verdict::kWinner,      Verdict::kSlower,    Verdict::kNotBetterThanDefault, Verdict::kMeasuredAgain,
    Verdict::kNotCompared, Verdict::kCondemned, Verdict::kUnverified,           Verdict::kFailed};
std::string_view VerdictName(Verdict verdict);  // "not_better_than_default"

// The verdict of each contender, in their order. kWinner is the one that FindWinner finds.
std::vector<Verdict> Explain(std::span<const Contender> contenders);

}  // namespace hone::records

#endif  // HONE_RECORDS_WINNER_H_
