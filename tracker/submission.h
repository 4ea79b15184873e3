// SPDX-License-Identifier: Apache-2.0
// Submits a job in the name of its caller, for gRPC and HTTP: both check and fill in the same.
#ifndef HONE_TRACKER_SUBMISSION_H_
#define HONE_TRACKER_SUBMISSION_H_

#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/job.pb.h"
#include "tracker/file_rights.h"
#include "tracker/shell.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

// Writes a change into the audit log. object: the job's id, or its name if it was refused.
using NoteChange = std::function<void(std::string_view object, const absl::Status& result)>;

// caller: nullopt = the user who owns the tracker. note: not called for a job that was submitted before. Waits until
// the job is stored. Errors as JobService.Submit, and those of FileRights::CheckJob.
absl::StatusOr<v1::Job> SubmitFor(Shell& shell, const FileRights& rights, const std::optional<FarmIdentity>& caller,
                                  v1::JobSpec spec, const NoteChange& note);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_SUBMISSION_H_
