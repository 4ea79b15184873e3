// SPDX-License-Identifier: Apache-2.0
#include "tracker/submission.h"

#include <utility>

#include "base/identity.h"
#include "tracker/access.h"
#include "tracker/held_call.h"

namespace hone::tracker {

absl::StatusOr<v1::Job> SubmitFor(Shell& shell, const FileRights& rights, const std::optional<FarmIdentity>& caller,
                                  v1::JobSpec spec, const NoteChange& note) {
  spec.set_submitted_by(caller.has_value() ? caller->name : UserName());
  spec.set_submitter(caller.has_value() ? UriOf(*caller) : "");
  absl::Status allowed = CheckPriority(caller, spec.priority());
  if (allowed.ok()) allowed = rights.CheckJob(caller, spec);
  bool changed = false;
  absl::StatusOr<v1::Job> job =
      !allowed.ok() ? allowed
                    : Await<v1::Job>([&](Done<v1::Job> done) { changed = shell.SubmitJob(spec, std::move(done)); });
  if (changed || !job.ok()) note(job.ok() ? job->id() : spec.name(), job.status());
  return job;
}

}  // namespace hone::tracker
