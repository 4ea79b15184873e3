// SPDX-License-Identifier: Apache-2.0
// Makes the times of earlier runs comparable: scales them to one speed of the device, which changes between visits.
#ifndef HONE_TUNER_ONE_SPEED_H_
#define HONE_TUNER_ONE_SPEED_H_

#include <string>
#include <vector>

#include "tuner/farm.h"

namespace hone::tuner {

// Scales all times in `past`, which must be in the order measured, to the speed at which the winner was timed last.
// Schedules that were timed in several visits tell the device's speed factor. In a confirmation the default schedule
// tells it, because no lucky time selected it. Otherwise it is the median over all shared schedules; a single one is
// treated as the incumbent of a search (speed_factor.h). Times of disturbed visits are removed.
// winner: schedule of the winner; empty: times are scaled to the speed of the first visit. default_schedule: the
// default schedule.
void ScaleToOneSpeed(std::vector<PastTrial>& past, const std::string& winner, const std::string& default_schedule);

}  // namespace hone::tuner

#endif  // HONE_TUNER_ONE_SPEED_H_
