// SPDX-License-Identifier: Apache-2.0
// How many interleaved rounds and calls a confirmation takes. A confirmation times finalists against one another once
// more, in interleaved rounds ("turns" below). Agents run by these numbers, and tuners estimate its duration from them.
#ifndef HONE_BASE_CONFIRMATION_H_
#define HONE_BASE_CONFIRMATION_H_

namespace hone {

inline constexpr double kSlowCall = 0.2;  // seconds; one call this long is precise enough and needs no cache warm-up
inline constexpr int kFewestTurns = 3;    // fewer rounds are no comparison; slow calls need no more than these
// Rounds for calls that are not slow. With fewer rounds, noise decides among kernels that are equally fast.
inline constexpr int kFewestConfirmingTurns = 11;

// The rounds of a confirmation. best: seconds that one call of its fastest candidate takes.
constexpr int TurnsToConfirm(double best) { return best < kSlowCall ? kFewestConfirmingTurns : kFewestTurns; }

// The minimum number of calls of one candidate in `turns` rounds. seconds: the duration of one call. A slow candidate
// is called twice before the rounds and once in each round. A fast one, for which caches matter, is called five times
// before the rounds and twice in each.
constexpr int CallsToConfirm(double seconds, int turns) { return seconds < kSlowCall ? 5 + 2 * turns : 2 + turns; }

}  // namespace hone

#endif  // HONE_BASE_CONFIRMATION_H_
