// SPDX-License-Identifier: Apache-2.0
#include "tracker/farm_state.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/status.h"
#include "proto/convert.h"
#include "storage/open.h"
#include "tracker/queue/jobs.h"
#include "transport/farm_identity.h"

namespace hone::tracker {
namespace {

// "" for a job that was read, else what is wrong with it.
std::string ReadJob(const std::string& id, const std::string& spec, const std::string& state, v1::Job* job) {
  v1::JobSpec parsed;
  if (!job->ParseFromString(state) || job->id() != id) return "its state cannot be read";
  if (!parsed.ParseFromString(spec)) return "its specification cannot be read";
  if (!v1::JobState_IsValid(job->state()) || job->state() == v1::JOB_STATE_UNSPECIFIED) return "its state is not known";
  const bool has_work = !parsed.workloads().empty() || parsed.has_run();
  if (!has_work && !JobQueue::Ended(*job)) return "it has neither workloads nor a run";
  *job->mutable_spec() = std::move(parsed);
  return "";
}

v1::Job Damaged(const std::string& id, const std::string& why, absl::Time now) {
  v1::Job job;
  job.set_id(id);
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_error(fmt::format(
      "the job is damaged in the tracker's state file: {}; submit it again, and check the tracker's disk", why));
  *job.mutable_created() = ToProto(now);
  *job.mutable_ended() = ToProto(now);
  return job;
}

}  // namespace

absl::StatusOr<FarmState> FarmState::Open(const std::filesystem::path& path, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<storage::FarmStore> store, storage::OpenFarm(path));
  return BeginRun(std::move(store), now);
}

absl::StatusOr<FarmState> FarmState::BeginRun(std::unique_ptr<storage::FarmStore> store, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(storage::FarmRun run, store->BeginRun(now));
  return FarmState(std::move(store), std::move(run));
}

absl::StatusOr<std::vector<v1::Job>> FarmState::TakeJobs(absl::Time now) {
  HONE_ASSIGN_OR_RETURN(std::vector<storage::JobRow> rows, store_->Jobs());
  std::vector<v1::Job> jobs;
  std::vector<storage::DamagedJob> damaged;
  for (storage::JobRow& row : rows) {
    v1::Job job;
    if (const std::string why = ReadJob(row.id, row.job.spec, row.job.state, &job); !why.empty()) {
      spdlog::error("job {} cannot be resumed: {}", row.id, why);
      job = Damaged(row.id, why, now);
      damaged.push_back({row.id, why, std::move(row.job), ToStored(job, false).state});
    }
    // A tracker of an earlier version stored the name alone (decision 0293).
    v1::JobSpec& spec = *job.mutable_spec();
    const bool has_name = spec.submitter().empty() && !spec.submitted_by().empty();
    if (has_name) spec.set_submitter(UriOf({Role::kClient, spec.submitted_by()}));
    jobs.push_back(std::move(job));
  }
  if (!damaged.empty()) HONE_RETURN_IF_ERROR(store_->SetAside(damaged, now));
  return jobs;
}

absl::StatusOr<std::map<std::string, v1::HealthRecord>> FarmState::Health() const {
  HONE_ASSIGN_OR_RETURN(const auto stored, store_->Health());
  std::map<std::string, v1::HealthRecord> health;
  for (const auto& [device, record] : stored) {
    if (health[device].ParseFromString(record)) continue;
    spdlog::error(
        "the state file has an unreadable health record of {}; the record is dropped, and the device is checked again",
        device);
    health.erase(device);
  }
  return health;
}

absl::StatusOr<std::vector<v1::FleetWatch>> FarmState::Watches() const {
  HONE_ASSIGN_OR_RETURN(const auto stored, store_->Watches());
  std::vector<v1::FleetWatch> watches;
  for (const auto& [key, row] : stored) {
    const auto& [name, device] = key;
    if (!device.empty()) continue;
    v1::FleetWatch watch;
    if (!watch.ParseFromString(row) || watch.spec().name() != name || watch.spec().run().packages().empty()) {
      spdlog::error("the state file has an unreadable watch '{}', which is left out; add it again", name);
      continue;
    }
    watch.clear_devices();
    for (const std::string& each : watch.spec().devices()) {
      v1::FleetWatchDevice& nights = *watch.add_devices();
      const auto found = stored.find({name, each});
      if (found == stored.end() || !nights.ParseFromString(found->second)) {
        spdlog::error("the state file has no readable nights of {} for the watch '{}'; it begins anew", each, name);
        nights.Clear();
      }
      nights.set_device(each);
    }
    watches.push_back(std::move(watch));
  }
  return watches;
}

}  // namespace hone::tracker
