// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/identity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/farm_devices.h"
#include "cli/interrupts.h"
#include "cli/job_client.h"
#include "cli/job_follower.h"
#include "cli/job_text.h"
#include "cli/local_farm.h"
#include "cli/model_source.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/submission.h"
#include "cli/tracker_options.h"
#include "records/default_path.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kConfirmationTimeMax = absl::Seconds(20);  // limit of the confirmation after Ctrl-C
constexpr std::string_view kConfirming =
    "\nending: comparing the best kernels so far with the untuned ones, for some seconds; Ctrl-C again ends at once\n";
constexpr std::string_view kEnding = "\nending at once; everything measured so far is kept\n";

struct TuneOptions {
  ModelOptions model;
  TrackerOptions tracker;
  SearchOptions search;
  std::string records;
  bool json = false;
};

// Starts a local farm for the duration of the command, with the devices of `specs`, and sets options.tracker to it.
// Nullopt if --tracker was given. With and without --tracker, tuning takes the same path through a tracker.
absl::StatusOr<std::optional<LocalFarm>> StartFarm(TuneOptions& options, const std::vector<v1::JobSpec>& specs,
                                                   const Interrupts& interrupts) {
  if (options.tracker.given()) return std::nullopt;
  std::filesystem::path records = options.records;
  if (records.empty()) {
    HONE_ASSIGN_OR_RETURN(records, records::DefaultRecordsPath());
  }
  std::vector<std::string> devices;
  int threads = 1;
  for (const v1::JobSpec& spec : specs) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(spec.target()));
    const std::string device = target::DeviceSelector(target);
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
    threads = std::max(threads, spec.threads());
  }
  HONE_ASSIGN_OR_RETURN(LocalFarm farm, LocalFarm::Start({.records = records,
                                                          .threads = threads,
                                                          .devices = devices,
                                                          .reproducers = options.model.reproducers,
                                                          .interrupts = &interrupts}));
  options.tracker.address = farm.address();
  return std::optional<LocalFarm>(std::move(farm));
}

absl::StatusOr<std::vector<v1::JobSpec>> Specs(TuneOptions& options) {
  if (!options.tracker.given() && options.model.targets.size() > 1) {
    return UsageError(
        "several --target need a farm: give its --tracker; without a farm there is one device, this machine");
  }
  std::vector<v1::Device> known;
  if (NeedsKnownDevices(options.model, options.search)) {
    HONE_ASSIGN_OR_RETURN(known, KnownDevices(options.tracker));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(options.model, options.search, known));
  return MakeJobSpecs(options.model, options.search, parts);
}

// A job that only confirms the results of the search `ended`, on the same kind of device. Its limit of one trial is
// below the number of trials in the records, so it makes no new ones. searched: the job as it was submitted.
v1::JobSpec ConfirmationOf(const v1::JobSpec& searched, const v1::Job& ended) {
  v1::JobSpec spec = searched;
  spec.set_request_id(RandomId());
  spec.set_trials(1);
  spec.clear_model();  // the user waits
  spec.clear_time_budget();
  spec.mutable_until()->Clear();
  // The end of the search is by the tracker's clock, so the end of the confirmation is as well.
  spec.mutable_until()->set_seconds(ended.ended().seconds() + absl::ToInt64Seconds(kConfirmationTimeMax) + 1);
  const std::string& kind = ended.needs().fingerprint_digest();
  if (!kind.empty()) spec.set_device_kind(kind);
  return spec;
}

// Replaces the times of the search by those of its confirmation. The numbers of trials stay.
void TakeTimes(const v1::JobProgress& confirmed, v1::JobProgress& searched) {
  for (int i = 0; i < std::min(confirmed.workloads_size(), searched.workloads_size()); ++i) {
    v1::WorkloadProgress& workload = *searched.mutable_workloads(i);
    const int64_t trials = workload.trials();
    workload = confirmed.workloads(i);
    workload.set_trials(trials);
  }
  if (!confirmed.has_latency_before_seconds() || !confirmed.has_latency_after_seconds()) return;
  searched.set_latency_before_seconds(confirmed.latency_before_seconds());
  searched.set_latency_after_seconds(confirmed.latency_after_seconds());
}

// Confirms the results of cancelled searches. The fastest candidate of a cancelled search may be due to noise, or
// slower than the untuned kernel. As at the end of every complete search, the best candidates are compared with the
// untuned kernel, and `jobs` get the new times. specs: the jobs as submitted, in the same order.
absl::Status Confirm(JobClient& client, JobFollower& follower, const Interrupts& interrupts,
                     const std::vector<v1::JobSpec>& specs, std::vector<v1::Job>& jobs) {
  std::vector<v1::JobSpec> confirmations;
  std::vector<v1::Job*> searched;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const v1::JobProgress& progress = jobs[i].progress();
    if (jobs[i].state() != v1::JOB_STATE_CANCELLED || progress.trials() == 0 || progress.search_ended()) continue;
    confirmations.push_back(ConfirmationOf(specs[i], jobs[i]));
    searched.push_back(&jobs[i]);
  }
  if (confirmations.empty()) return absl::OkStatus();
  const auto keeps_trying = [](absl::Duration) {
    return false;
  };  // no retries, because the user waits for the command to end
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> ended, client.Submit(confirmations, keeps_trying));
  const auto stop = [&] { return interrupts.MustEndAtOnce() ? kEnding : std::string_view(); };
  HONE_RETURN_IF_ERROR(follower.Follow(ended, stop));
  for (size_t i = 0; i < ended.size(); ++i) {
    if (ended[i].state() == v1::JOB_STATE_SUCCEEDED) {
      TakeTimes(ended[i].progress(), *searched[i]->mutable_progress());
    }
  }
  return FirstJobFailure(ended, interrupts.MustEndAtOnce());
}

absl::Status Tune(TuneOptions options) {
  if (options.tracker.given() && !options.records.empty()) {
    return UsageError("--records and --tracker exclude each other: a farm's tracker keeps its records");
  }
  if (options.tracker.given() && !options.model.reproducers.empty()) {
    return UsageError(
        "--reproducers and --tracker exclude each other: the tuners of the farm compile the candidates; start them "
        "with hone-tuner --reproducers");
  }
  if (!options.tracker.given() && !options.search.devices.empty()) {
    return UsageError(
        "--device names a device of a farm: give its --tracker, or set HONE_TRACKER; without a farm, give --target");
  }
  std::vector<std::string> inputs = options.model.Files();
  inputs.insert(inputs.end(), options.search.hints.begin(), options.search.hints.end());
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.records, inputs));
  if (!options.search.HasEnd()) options.search.time = "10m";
  HONE_ASSIGN_OR_RETURN(std::vector<v1::JobSpec> specs, Specs(options));
  const Interrupts interrupts;
  HONE_ASSIGN_OR_RETURN(std::optional<LocalFarm> farm, StartFarm(options, specs, interrupts));
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  HONE_RETURN_IF_ERROR(SendModels(channel, specs, StopOnInterrupt(interrupts).token()));
  JobClient client(channel, options.tracker.address);
  // A farm whose disk is full waits without limit. A command gives up, because a user waits for it.
  const absl::Duration longest = farm.has_value() ? kOutageTimeMax : kSubmitRetryTimeMax;
  const auto keeps_trying = [&](absl::Duration refused) { return !interrupts.WasInterrupted() && refused < longest; };
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, client.Submit(specs, keeps_trying));
  JobFollower follower(client, interrupts, options.tracker.address, farm.has_value() ? &*farm : nullptr);
  const auto stop = [&] {
    return !interrupts.WasInterrupted() ? std::string_view() : interrupts.MustEndAtOnce() ? kEnding : kConfirming;
  };
  const absl::Status followed = follower.Follow(jobs, stop);
  if (!followed.ok() && !interrupts.WasInterrupted()) return followed;
  if (followed.ok() && interrupts.WasInterrupted() && !interrupts.MustEndAtOnce()) {
    const absl::Status confirmed = Confirm(client, follower, interrupts, specs, jobs);
    if (!confirmed.ok())
      PrintMessage(fmt::format("the final comparison was not made: {}\n", std::string(confirmed.message())));
  }
  HONE_RETURN_IF_ERROR(options.json ? PrintJson(JobsToJson(jobs)) : PrintText(JobsToText(jobs)));
  return followed.ok() ? FirstJobFailure(jobs, interrupts.WasInterrupted()) : followed;
}

}  // namespace

void AddTuneCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "search for the fastest kernels of a model and record them");
  options->model.AddTo(command, ModelOptions::Count::kOne, ModelOptions::Count::kSeveral);
  options->tracker.AddTo(command, TrackerOptions::Need::kOptional, {&options->records, &options->model.reproducers});
  options->search.AddTo(command);
  command->add_option("--records", options->records, "records file (default: ~/.local/share/hone/records.db)")
      ->check(NotEmpty);
  options->model.AddPlaceTo(command);
  options->model.AddReproducersTo(command);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Tune(*options); });
}

}  // namespace hone::cli
