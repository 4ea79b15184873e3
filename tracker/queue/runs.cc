// SPDX-License-Identifier: Apache-2.0
// The life of a job that runs packages (JobSpec.run): queued until a device takes its batch, running on that device,
// ended with the report.
//
// Such a job is one batch, so it needs no tuner. While a device fulfils its conditions, its batch is in the queue of
// batches; while none does, the job waits and says for which device, as every job. A device that is lost with it costs
// an attempt. A tracker that starts again queues the batch again, because batches are not stored; which devices were
// lost with it is stored with the job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/digest.h"
#include "base/inner_path.h"
#include "base/median.h"
#include "base/run_limits.h"
#include "base/status.h"
#include "proto/convert.h"
#include "tracker/queue/farm.h"
#include "tracker/queue/matches.h"
#include "tracker/queue/memory.h"
#include "tracker/queue/run_task.h"
#include "tracker/queue/submitter.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

constexpr int kShapesMax = 256;
constexpr size_t kShapesBytesMax = 64 << 10;  // of all shapes together
constexpr size_t kReportBytesMax = 16 << 20;
constexpr size_t kTextBytesMax = 4096;       // of a name or a shape
constexpr double kSecondsMax = 24.0 * 3600;  // of measurement
constexpr int kThreadsMax = 4096;            // as HONE_MAX_THREADS
constexpr int64_t kInputBytesMax = int64_t{1} << 30;
constexpr double kLineBytesPerSecond = 1e6;  // of the slowest line to a device that is expected
// A package is loaded and run once alone, and loaded and run again to be measured.
constexpr double kPackageSecondsMax = 2 * (kPackageLoadSecondsMax + kPackageRunSecondsMax);

absl::Status CheckFile(const v1::FileName& file, std::string_view what) {
  if (!IsSha256Hex(file.digest())) {
    return absl::InvalidArgumentError(fmt::format("the {} '{}' has the digest '{}', which is not the SHA-256 of a file",
                                                  what, TruncateUtf8(file.name(), 40),
                                                  TruncateUtf8(file.digest(), 80)));
  }
  if (file.name().size() > kTextBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the name of the {} has {} bytes; the limit is {}", what, file.name().size(), kTextBytesMax));
  }
  if (file.bytes() >= 0 && file.bytes() <= kRunFileBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the {} has {} bytes; the limit is {}", what, file.bytes(), kRunFileBytesMax));
}

// Completes what the agent reported about its environment by what the tracker knows of the device.
void CompleteEnvironment(const v1::BatchResult& result, v1::RunReport& report) {
  v1::RunEnvironment& environment = *report.mutable_environment();
  const v1::DeviceFingerprint& device = result.device();
  if (environment.kernel().empty()) {  // an agent that does not report it
    environment.set_kernel(device.kernel());
    environment.set_governor(device.governor());
    environment.set_boost(device.boost());
    environment.set_smt(device.smt());
    environment.set_huge_pages(device.huge_pages());
    environment.set_driver(device.driver());
  }
  environment.set_agent_version(result.agent_version());
  environment.set_device(device.text());
}

// The medians that lists of jobs show: of the last package, and before it that of the first one if there are several.
void SetLatencies(const v1::RunReport& report, v1::JobProgress& progress) {
  const auto median = [](const v1::PackageReport& package) {
    return Median({package.seconds().begin(), package.seconds().end()});
  };
  const auto has_times = [](const v1::PackageReport& package) { return !package.seconds().empty(); };
  if (report.packages().empty()) return;
  if (!std::all_of(report.packages().begin(), report.packages().end(), has_times)) return;
  progress.set_latency_after_seconds(median(*report.packages().rbegin()));
  if (report.packages_size() > 1) progress.set_latency_before_seconds(median(report.packages(0)));
}

}  // namespace

absl::Status CheckRunTask(const v1::RunTask& task) {
  if (task.packages().empty() || task.packages_size() > static_cast<int>(kRunPackagesMax)) {
    return absl::InvalidArgumentError(
        fmt::format("the run has {} packages; give 1 to {}", task.packages_size(), kRunPackagesMax));
  }
  for (const v1::FileName& package : task.packages()) HONE_RETURN_IF_ERROR(CheckFile(package, "run's package"));
  if (task.has_inputs()) {
    HONE_RETURN_IF_ERROR(CheckFile(task.inputs(), "run's file of inputs"));
    if (task.inputs().bytes() > kInputBytesMax) {
      return absl::InvalidArgumentError(
          fmt::format("the run's file of inputs has {} bytes; the limit is {}", task.inputs().bytes(), kInputBytesMax));
    }
  }
  if (task.shapes_size() > kShapesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the run has {} shapes; the limit is {}", task.shapes_size(), kShapesMax));
  }
  size_t shape_bytes = 0;
  for (const std::string& shape : task.shapes()) {
    shape_bytes += shape.size();
    if (shape.size() > kTextBytesMax) {
      return absl::InvalidArgumentError(
          fmt::format("a shape of the run has {} bytes; the limit is {}", shape.size(), kTextBytesMax));
    }
  }
  if (shape_bytes > kShapesBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the shapes of the run have {} bytes; the limit is {}", shape_bytes, kShapesBytesMax));
  }
  if (task.threads() < 0 || task.threads() > kThreadsMax) {
    return absl::InvalidArgumentError(
        fmt::format("the run asks for {} threads; give 0 to {}", task.threads(), kThreadsMax));
  }
  if (task.seconds() >= 0 && task.seconds() <= kSecondsMax) return absl::OkStatus();  // false for NaN
  return absl::InvalidArgumentError(
      fmt::format("the run asks for {} seconds of measurement; give 0 to {}", task.seconds(), kSecondsMax));
}

absl::Status CheckModel(const v1::ModelSource& model) {
  if (model.files().empty() || model.files_size() > kModelFilesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the job's model has {} files; give 1 to {}", model.files_size(), kModelFilesMax));
  }
  if (model.programs().empty()) return absl::InvalidArgumentError("the job's model has no program");
  std::set<std::string> paths;
  for (const v1::ModelFile& file : model.files()) {
    HONE_RETURN_IF_ERROR(CheckFile(file.file(), "model's file"));
    if (file.path().size() <= kTextBytesMax && IsInnerPath(file.path()) && paths.insert(file.path()).second) continue;
    return absl::InvalidArgumentError(fmt::format(
        "the job's model has a file at '{}'; give each file another relative path", TruncateUtf8(file.path(), 80)));
  }
  const auto is_file = [&](const std::string& path) { return paths.contains(path); };
  const bool known = std::ranges::all_of(model.operators(), is_file) &&
                     std::ranges::all_of(model.bound_files(), [&](const auto& bound) { return is_file(bound.second); });
  return known ? absl::OkStatus()
               : absl::InvalidArgumentError("the job's model names a file that is not among its files");
}

std::string ReportProblem(const v1::RunTask& task, const v1::RunReport& report) {
  if (report.packages_size() != task.packages_size()) {
    return fmt::format("reported {} packages of {}", report.packages_size(), task.packages_size());
  }
  if (report.ByteSizeLong() > kReportBytesMax) return "sent a report that is too large";
  const auto is_time = [](double seconds) { return seconds >= 0 && std::isfinite(seconds); };
  for (const v1::PackageReport& package : report.packages()) {
    const bool times =
        std::ranges::all_of(package.seconds(), [&](double seconds) { return is_time(seconds) && seconds > 0; });
    if (!times || !is_time(package.load_seconds()) || !is_time(package.first_run_seconds())) {
      return "reported a time that is none";
    }
  }
  return "";
}

v1::Requirements RunRequirements(const v1::JobSpec& spec) {
  v1::Requirements requirements;
  *requirements.mutable_labels() = spec.labels();
  *requirements.mutable_devices() = spec.devices();
  requirements.set_fingerprint_digest(spec.device_kind());
  requirements.set_threads(spec.run().threads());
  return requirements;
}

v1::Batch RunBatch(const v1::JobSpec& spec) {
  v1::Batch batch;
  *batch.mutable_run() = spec.run();
  batch.add_candidates()->set_id(std::string(kRunCandidate));
  *batch.mutable_requirements() = RunRequirements(spec);
  batch.set_threads(std::max(1, spec.run().threads()));
  batch.set_priority(spec.priority());
  return batch;
}

absl::Duration RunTimeMax(const v1::RunTask& task) {
  double bytes = static_cast<double>(task.inputs().bytes());
  for (const v1::FileName& package : task.packages()) bytes += static_cast<double>(package.bytes());
  const double packages = task.packages_size();
  return absl::Seconds(bytes / kLineBytesPerSecond + packages * (kPackageSecondsMax + 2 * task.seconds()));
}

void JobQueue::StartRun(const std::string& job_id, absl::Time now) {
  Entry& entry = jobs_.at(job_id);
  if (entry.job.state() != v1::JOB_STATE_QUEUED) return;
  entry.job.set_attempts(entry.job.attempts() + 1);
  if (!entry.job.has_started()) *entry.job.mutable_started() = Stamp(now);
  SetState(entry, v1::JOB_STATE_RUNNING, now);
}

void JobQueue::LoseRun(const std::string& job_id, const std::string& device, const std::string& why, absl::Time now) {
  Entry& entry = jobs_.at(job_id);
  if (entry.job.state() != v1::JOB_STATE_RUNNING) return;
  entry.job.add_lost_on(device);
  entry.job.set_fruitless(entry.job.fruitless() + 1);
  if (entry.job.fruitless() < options_.lost_runs_max) return SetState(entry, v1::JOB_STATE_QUEUED, now);
  entry.job.set_error(TruncateUtf8(
      fmt::format("devices were lost {} times while they ran it; the last time: {}", entry.job.fruitless(), why)));
  SetState(entry, v1::JOB_STATE_FAILED, now);
}

void JobQueue::ReturnRun(const std::string& job_id, absl::Time now) {
  Entry& entry = jobs_.at(job_id);
  if (entry.job.state() == v1::JOB_STATE_RUNNING) ReturnJob(entry, now);
}

void JobQueue::EndRun(const std::string& job_id, const v1::BatchResult& result, absl::Time now) {
  Entry& entry = jobs_.at(job_id);
  if (Ended(entry.job)) return;
  v1::JobProgress& progress = *entry.job.mutable_progress();
  progress.set_run_device(result.device_name());
  progress.set_seconds(result.visit_seconds());
  if (result.has_run()) {
    *progress.mutable_run() = result.run();
    CompleteEnvironment(result, *progress.mutable_run());
    SetLatencies(result.run(), progress);
  } else {
    const std::string failure = result.outcomes().empty() ? "" : result.outcomes(0).outcome().failure().text();
    entry.job.set_error(TruncateUtf8(!result.error().empty() ? result.error() : failure));
  }
  entry.progress_bytes = MemoryOf(progress);
  SetState(entry, result.has_run() ? v1::JOB_STATE_SUCCEEDED : v1::JOB_STATE_FAILED, now);
}

// Puts the batch of a queued job into the queue of batches while a device can take it, and takes it out while none can,
// so that it does not count as a batch that no device wants.
void Farm::CheckQueuedRun(const v1::Job& job, absl::Time now) {
  std::string absence = DescribeAbsence(RunRequirements(job.spec()), now);
  if (!absence.empty()) {
    batches_.DropJob(job.id());
  } else if (!batches_.Has(job.id(), std::string(kRunCandidate))) {
    std::set<std::string> lost_by;
    for (const std::string& device : job.lost_on()) lost_by.insert(SplitName(device).first);
    const auto queued = batches_.Submit({job.id(), SubmitterOf(job.spec()), "runs of " + SubmitterOf(job.spec())},
                                        std::string(kRunCandidate), RunBatch(job.spec()), now, std::move(lost_by));
    if (!queued.ok()) absence = std::string(queued.status().message());
  }
  jobs_.SetBlocked(job.id(), absence, now);
}

void Farm::LoseRun(const std::string& job_id, const std::string& device, const std::string& why, absl::Time now) {
  jobs_.LoseRun(job_id, device, why, now);
  // Several devices were lost with it, so the packages are to blame.
  const v1::Job& job = *jobs_.Find(job_id);
  if (job.state() == v1::JOB_STATE_FAILED) {
    for (const std::string& name : job.lost_on()) devices_.Forgive(name);
  }
  DropReleasedJobs();  // at once, because the job may get a device in this same call
}

std::set<std::string> Farm::FilesInUse(const std::vector<std::string>& digests) const {
  std::set<std::string> in_use;
  for (const std::string& digest : digests) {
    // A tuner may have a run in its job.
    if (jobs_.files().IsUsed(digest) || batches_.files().IsUsed(digest) || watches_.files().IsUsed(digest)) {
      in_use.insert(digest);
    }
  }
  return in_use;
}

std::vector<std::string> Farm::TakeUnneededPackages() {
  const auto has_ended = [&](const auto& packages) {
    const v1::Job* job = jobs_.Find(packages.first);
    return job == nullptr || JobQueue::Ended(*job);
  };
  if (std::ranges::none_of(model_packages_, has_ended)) return {};
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_RUNNING)) {
    const bool may_be_storing = job->spec().has_model() && job->progress().search_ended();
    if (may_be_storing && !model_packages_.contains(job->id())) return {};
  }
  std::set<std::string> unneeded;
  for (const auto& packages : model_packages_) {
    if (has_ended(packages)) unneeded.insert(packages.second.begin(), packages.second.end());
  }
  std::erase_if(model_packages_, has_ended);
  for (const auto& [job_id, packages] : model_packages_) {
    for (const std::string& digest : packages) unneeded.erase(digest);
  }
  return {unneeded.begin(), unneeded.end()};
}

bool Farm::AgentNeedsFile(const std::string& agent_id, const std::string& digest) const {
  return std::ranges::any_of(batches_.leases(), [&](const auto& leased) {
    const BatchQueue::Lease& lease = leased.second;
    if (lease.agent_id != agent_id || !batches_.WholeBatch(lease).has_run()) return false;
    const v1::RunTask& task = batches_.WholeBatch(lease).run();
    return (task.has_inputs() && task.inputs().digest() == digest) ||
           std::ranges::find(task.packages(), digest, &v1::FileName::digest) != task.packages().end();
  });
}

bool Farm::TunerNeedsFile(const std::string& tuner, const std::string& digest) const {
  return std::ranges::any_of(jobs_.files().UsersOf(digest), [&](const std::string& job_id) {
    const v1::Job& job = *jobs_.Find(job_id);
    return job.state() == v1::JOB_STATE_RUNNING && !job.spec().has_run() && jobs_.TunerOf(job_id) == tuner;
  });
}

std::set<std::string> Farm::SubmittersOfOutputs(const std::string& agent_id) const {
  std::set<std::string> submitters;
  for (const auto& [id, lease] : batches_.leases()) {
    if (lease.agent_id != agent_id || !batches_.WholeBatch(lease).run().keep_outputs()) continue;
    submitters.insert(SubmitterOf(jobs_.Find(batches_.JobOf(lease))->spec()));
  }
  return submitters;
}

std::set<std::string> Farm::SubmittersOfModels(const std::string& tuner) const {
  std::set<std::string> submitters;
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_RUNNING)) {
    const bool is_held = job->spec().has_model() && jobs_.TunerOf(job->id()) == tuner;
    if (is_held && job->progress().search_ended()) submitters.insert(SubmitterOf(job->spec()));
  }
  return submitters;
}

std::set<std::string> Farm::AgentsThatReported(const std::string& submitter, const std::string& digest) const {
  std::set<std::string> agents;
  for (const v1::Job* job : jobs_.InState(v1::JOB_STATE_SUCCEEDED)) {
    if (!job->spec().has_run() || SubmitterOf(job->spec()) != submitter) continue;
    for (const v1::PackageReport& package : job->progress().run().packages()) {
      if (package.outputs().digest() != digest) continue;
      agents.insert(SplitName(job->progress().run_device()).first);
    }
  }
  return agents;
}

// Ends the jobs whose batches are finished: with a report, a failure, or an error of the batch.
void Farm::EndRuns(absl::Time now) {
  for (const v1::JobState state : {v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING}) {
    for (const v1::Job* job : jobs_.InState(state)) {
      if (!job->spec().has_run()) continue;
      const std::optional<v1::BatchResult> result = batches_.ResultOf(job->id(), std::string(kRunCandidate));
      if (result.has_value()) jobs_.EndRun(job->id(), *result, now);
    }
  }
}

}  // namespace hone::tracker
