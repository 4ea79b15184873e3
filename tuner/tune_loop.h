// SPDX-License-Identifier: Apache-2.0
// The tuning loop of one job, from its lease to its end. To read it, start with TuneLoop::Run in tune_loop.cc.
//
// The loop keeps no state of its own: results are in the records, progress is in the job at the tracker. If a tuner
// dies, another one resumes the job and finds the outcomes in the records. The farm measures and build workers compile;
// the loop only decides.
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

// Tunes the job until its budget is spent or all searches have converged. Sets *progress, also on an error. A time
// budget is kept to within some seconds, however slow the kernels are: measurements that do not fit are left out.
// clock: the job's clock, which is steady and stands still while the job waits. wall_clock: the clock of Job::until.
// Aborted, Cancelled or Unavailable: errors of the farm, after which the job is not over or belongs to another tuner;
// Aborted also if it was requeued because no device fits. Any other error is the job's own and ends it.
absl::Status TuneJob(const Job& job, Farm& farm, BuildPool& builders, Progress* progress,
                     const Clock& clock = SteadyNow, const Clock& wall_clock = absl::Now);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TUNE_LOOP_H_
