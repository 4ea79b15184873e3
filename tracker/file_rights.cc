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
  shell_->WithFarm([&](const Farm& farm, absl::Time) { agents = farm.AgentsThatReported(UriOf(client), digest); });
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
  return submitters.size() == 1 ? *submitters.begin() : UriOf(*caller);
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

absl::Status FileRights::CheckOutputs(const std::optional<FarmIdentity>& agent, const v1::RunReport& report) const {
  for (const v1::PackageReport& package : report.packages()) {
    if (!package.has_outputs()) continue;
    const v1::FileName& outputs = package.outputs();
    const std::optional<int64_t> stored = store_->BytesOf(outputs.digest());
    if (!stored.has_value() || (agent.has_value() && !store_->Holds(outputs.digest(), UriOf(*agent)))) {
      return absl::FailedPreconditionError(
          fmt::format("the device reported outputs that its agent has not sent, or that were deleted since: {}",
                      TruncateUtf8(outputs.digest(), 80)));
    }
    if (*stored == outputs.bytes()) continue;
    return absl::InvalidArgumentError(
        fmt::format("the device reported outputs of {} bytes; its agent has sent {}", outputs.bytes(), *stored));
  }
  return absl::OkStatus();
}

std::optional<v1::SynchronizeRequest> FileRights::WithoutFalseOutputs(const std::optional<FarmIdentity>& agent,
                                                                      const v1::SynchronizeRequest& request) const {
  std::optional<v1::SynchronizeRequest> changed;
  for (int i = 0; i < request.finished_size(); ++i) {
    const absl::Status right = CheckOutputs(agent, request.finished(i).result().run());
    if (right.ok()) continue;
    if (!changed.has_value()) changed = request;
    v1::BatchResult& result = *changed->mutable_finished(i)->mutable_result();
    result.Clear();
    result.set_error(std::string(right.message()));
  }
  return changed;
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
