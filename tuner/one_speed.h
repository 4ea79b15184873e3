// SPDX-License-Identifier: Apache-2.0
// Brings what earlier runs have measured to one speed of the device, so that it can be compared.
#ifndef HONE_TUNER_ONE_SPEED_H_
#define HONE_TUNER_ONE_SPEED_H_

#include <string>
#include <vector>

#include "tuner/farm.h"

namespace hone::tuner {

// What visits share tells how fast the device was: the default in a confirmation, which was not chosen for its luck;
// else all that they share, or an incumbent as in a search (belief.h). All times are brought to the speed at which the
// winner was timed last. The times of a visit that was disturbed are taken away. past: in the order measured. winner: a
// schedule; empty: to the speed of the first visit. standard: the default's.
void BringToOneSpeed(std::vector<PastTrial>& past, const std::string& winner, const std::string& standard);

}  // namespace hone::tuner

#endif  // HONE_TUNER_ONE_SPEED_H_
