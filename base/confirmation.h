// SPDX-License-Identifier: Apache-2.0
// How a confirmation times its candidates: agents do so, and tuners reckon with it.
#ifndef HONE_BASE_CONFIRMATION_H_
#define HONE_BASE_CONFIRMATION_H_

namespace hone {

inline constexpr double kSlowCall = 0.2;  // seconds; of such a call one says enough, and caches do not matter
inline constexpr int kFewestTurns = 3;    // fewer compare nothing; of slow calls there need be no more
// Of calls that are not slow: in fewer, one of several kernels that are equally fast wins by the noise.
inline constexpr int kFewestConfirmingTurns = 11;

// The turns that a confirmation takes, where a call of its fastest candidate takes so long.
constexpr int TurnsToConfirm(double best) { return best < kSlowCall ? kFewestConfirmingTurns : kFewestTurns; }

// The calls of a candidate that so many turns need at least, where one takes so long: two before the turns and one in
// each; where caches matter three more before them, and one more in each.
constexpr int CallsToConfirm(double seconds, int turns) { return seconds < kSlowCall ? 5 + 2 * turns : 2 + turns; }

}  // namespace hone

#endif  // HONE_BASE_CONFIRMATION_H_
