// SPDX-License-Identifier: Apache-2.0
#include "tracker/file_rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "tracker/queue/run_task.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {

absl::Status FileRights::CheckFetch(const std::optional<FarmIdentity>& caller, const std::string& digest) const {
  if (!caller.has_value() || caller->role == Role::kAdmin) return absl::OkStatus();
  if (caller->role == Role::kAgent) {
    bool needs = false;
    shell_->WithFarm([&](const Farm& farm, absl::Time) { needs = farm.AgentNeedsFile(caller->name, digest); });
    if (needs) return absl::OkStatus();
  }
  if (caller->role == Role::kTuner) {
    bool needs = false;
    shell_->WithFarm([&](const Farm& farm, absl::Time) { needs = farm.TunerNeedsFile(caller->name, digest); });
    if (needs) return absl::OkStatus();
  }
  if (store_->Holds(digest, UriOf(*caller))) return absl::OkStatus();
  if (caller->role == Role::kClient && HasRunWithOutputs(*caller, digest)) {
    store_->AddHolder(digest, UriOf(*caller));  // the next chunk need not look for the run again
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      fmt::format("'{}' may not fetch file {}: only those who have sent it, the submitter of the run that made it, "
                  "agents and tuners that work on a job with it, and admins may",
                  caller->name, TruncateUtf8(digest, 80)));
}

// Only reports of agents that sent the file count. An agent may report any digest.
bool FileRights::HasRunWithOutputs(const FarmIdentity& client, const std::string& digest) const {
  std::set<std::string> agents;
  shell_->WithFarm([&](const Farm& farm, absl::Time) { agents = farm.AgentsThatReported(client.name, digest); });
  return std::ranges::any_of(
      agents, [&](const std::string& agent) { return store_->Holds(digest, UriOf({Role::kAgent, agent})); });
}

std::string FileRights::OwnerOf(const std::optional<FarmIdentity>& caller) const {
  if (!caller.has_value()) return "";
  if (caller->role != Role::kAgent && caller->role != Role::kTuner) return UriOf(*caller);
  std::set<std::string> submitters;
  shell_->WithFarm([&](const Farm& farm, absl::Time) {
    submitters =
        caller->role == Role::kAgent ? farm.SubmittersOfOutputs(caller->name) : farm.SubmittersOfModels(caller->name);
  });
  // An agent or a tuner may work for several submitters at a time. Its files then count for itself.
  return submitters.size() == 1 ? UriOf({Role::kClient, *submitters.begin()}) : UriOf(*caller);
}

absl::Status FileRights::CheckJob(const std::optional<FarmIdentity>& caller, const v1::JobSpec& spec) const {
  // The limits first, so that the number of files is small.
  if (spec.has_model()) HONE_RETURN_IF_ERROR(CheckModel(spec.model()));
  if (spec.has_run()) HONE_RETURN_IF_ERROR(CheckRunTask(spec.run()));
  for (const v1::ModelFile& file : spec.model().files()) HONE_RETURN_IF_ERROR(CheckFile(caller, file.file()));
  return CheckTask(caller, spec.run());
}

absl::Status FileRights::CheckTask(const std::optional<FarmIdentity>& caller, const v1::RunTask& task) const {
  for (const v1::FileName& package : task.packages()) HONE_RETURN_IF_ERROR(CheckFile(caller, package));
  return task.has_inputs() ? CheckFile(caller, task.inputs()) : absl::OkStatus();
}

absl::Status FileRights::CheckFile(const std::optional<FarmIdentity>& caller, const v1::FileName& file) const {
  const std::optional<int64_t> stored = store_->BytesOf(file.digest());
  const bool may_name =
      !caller.has_value() || caller->role == Role::kAdmin || store_->Holds(file.digest(), UriOf(*caller));
  const std::string name = TruncateUtf8(file.name(), 80);
  if (!stored.has_value() || !may_name) {
    return absl::FailedPreconditionError(
        fmt::format("the file '{}' was not sent to the tracker by you, or was deleted since; send it first", name));
  }
  if (*stored == file.bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the file '{}' has {} bytes in the store, not {}", name, *stored, file.bytes()));
}

}  // namespace hone::tracker
