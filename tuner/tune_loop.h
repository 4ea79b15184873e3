// SPDX-License-Identifier: Apache-2.0
// Tuning one job: the whole loop, from a lease to its end. Read TuneLoop::Run in tune_loop.cc top to bottom.
//
// Stateless: what must last is in the records and in the job at the tracker. A tuner that dies is followed by another,
// which finds the outcomes of this one in the records. Measuring is the farm's work, compiling that of build workers;
// the loop decides.
#ifndef HONE_TUNER_TUNE_LOOP_H_
#define HONE_TUNER_TUNE_LOOP_H_

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "tuner/build_pool.h"
#include "tuner/farm.h"
#include "tuner/job.h"
#include "tuner/visit.h"

namespace hone::tuner {

// Tunes the job until its budget is spent or nothing is left to gain; fills *progress with where it stands, also on an
// error. A time budget is kept to within some seconds, however slow the kernels are: what there is no time for is left
// out. clock: the job's, which nobody sets and which stands still while it waits; wall_clock: what Job::until is by.
// Errors: Aborted, Cancelled, Unavailable as the farm says (the job is not over, or not ours any more: also one that
// was given back since no device fits now); any other error is the job's own and ends it.
absl::Status TuneJob(const Job& job, Farm& farm, BuildPool& builders, Progress* progress,
                     const Clock& clock = SteadyNow, const Clock& wall_clock = absl::Now);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TUNE_LOOP_H_
