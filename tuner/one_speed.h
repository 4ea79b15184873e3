// SPDX-License-Identifier: Apache-2.0
// Makes the times of earlier runs comparable: scales them to one speed of the device, which changes between visits.
#ifndef HONE_TUNER_ONE_SPEED_H_
#define HONE_TUNER_ONE_SPEED_H_

#include <string>
#include <vector>

#include "tuner/farm.h"

namespace hone::tuner {

// Scales the times in `past`, which must be in the order measured, to the speed at which the winner was timed last.
// Trials without a batch id belong to no known visit, so their times stay as they are.
// The device's speed factor in a visit follows from the schedules that an earlier visit timed too. In a confirmation it
// is that of the default schedule, because no lucky time selected it. Otherwise it is the median over these schedules.
// If there is only one, and it is not the default, it is taken for the incumbent (SpeedFactor::Update), which may find
// that the visit was disturbed; the times of such a visit are removed.
// winner: schedule of the winner; empty: times are scaled to the speed of the first visit. default_schedule: the
// default schedule.
void ScaleToOneSpeed(std::vector<PastTrial>& past, const std::string& winner, const std::string& default_schedule);

}  // namespace hone::tuner

#endif  // HONE_TUNER_ONE_SPEED_H_
