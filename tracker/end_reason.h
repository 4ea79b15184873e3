// SPDX-License-Identifier: Apache-2.0
// Why a job ended, as a sentence for display. Pure. Derived from the job's limits and progress, because the tuner does
// not report a reason.
#ifndef HONE_TRACKER_END_REASON_H_
#define HONE_TRACKER_END_REASON_H_

#include <string>

#include "hone/v1/job.pb.h"

namespace hone::tracker {

// Empty while the job is open, and for a run that succeeded, whose report says everything.
std::string EndReason(const v1::Job& job);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_END_REASON_H_
