// SPDX-License-Identifier: Apache-2.0
// Runs of packages (hone/v1/run.proto) as the queue sees them: their limits, and the batch that stands for one. Also
// the limits of the models (hone/v1/model.proto) that tuning jobs run at their end.
//
// Not here: the life of a job with a run (runs.cc), and the run itself (device_agent). Pure; safe from any thread.
#ifndef HONE_TRACKER_QUEUE_RUN_TASK_H_
#define HONE_TRACKER_QUEUE_RUN_TASK_H_

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/measure.pb.h"
#include "hone/v1/run.pb.h"

namespace hone::tracker {

// The id of the only candidate of a batch with a run.
inline constexpr std::string_view kRunCandidate = "run";

// kInvalidArgument: a field is missing or out of range; the text names it.
absl::Status CheckRunTask(const v1::RunTask& task);
absl::Status CheckModel(const v1::ModelSource& model);

// Adds the digests of the files that the run reads.
void AddDigests(const v1::RunTask& task, std::set<std::string>& digests);

// Why the report does not answer the task; "" if it does. Agents are not trusted: other code relies on what this
// checks.
std::string ReportProblem(const v1::RunTask& task, const v1::RunReport& report);

// What a device must fulfil for the job's run.
v1::Requirements RunRequirements(const v1::JobSpec& spec);
// The batch of a job with a run, with these requirements.
v1::Batch RunBatch(const v1::JobSpec& spec);

// How long a device may take for the run: for its measurements, for the transfer of its files over a slow line, and for
// packages whose first run is slow.
absl::Duration RunTimeMax(const v1::RunTask& task);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_RUN_TASK_H_
