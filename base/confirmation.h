// SPDX-License-Identifier: Apache-2.0
// How many interleaved rounds and calls a confirmation takes. A confirmation times finalists against one another once
// more, in interleaved rounds. Agents run by these numbers, and tuners estimate its duration from them.
#ifndef HONE_BASE_CONFIRMATION_H_
#define HONE_BASE_CONFIRMATION_H_

namespace hone {

inline constexpr double kSlowCallSecondsMin =
    0.2;  // seconds; one call this long is precise enough and needs no cache warm-up
inline constexpr int kInterleavedRoundsMin = 3;  // fewer rounds are no comparison; slow calls need no more than these
// Rounds for calls that are not slow. With fewer rounds, noise decides among kernels that are equally fast.
inline constexpr int kFastCallRoundsMin = 11;

// The rounds of a confirmation. best: seconds that one call of its fastest candidate takes.
constexpr int ConfirmationRounds(double best) {
  return best < kSlowCallSecondsMin ? kFastCallRoundsMin : kInterleavedRoundsMin;
}

// The minimum number of calls of one candidate in `rounds` rounds. seconds: the duration of one call. A slow candidate
// is called twice before the rounds and once in each round. A fast one, for which caches matter, is called five times
// before the rounds and twice in each.
constexpr int ConfirmationCallsMin(double seconds, int rounds) {
  return seconds < kSlowCallSecondsMin ? 5 + 2 * rounds : 2 + rounds;
}

}  // namespace hone

#endif  // HONE_BASE_CONFIRMATION_H_
