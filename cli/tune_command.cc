#include "cli/tune_command.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/farm_devices.h"
#include "cli/interrupts.h"
#include "cli/job_client.h"
#include "cli/job_text.h"
#include "cli/job_view.h"
#include "cli/local_farm.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/own_device.h"
#include "cli/submission.h"
#include "cli/tracker_options.h"
#include "records/default_path.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kLongestTrouble = absl::Seconds(3);

struct TuneOptions {
  ModelOptions model;
  TrackerOptions tracker;
  SearchOptions search;
  std::string records;
  bool json = false;
};

// With a tracker of its own, for the length of the command, if none was named: there is one path, not a local mode
// beside it.
absl::StatusOr<std::optional<LocalFarm>> StartFarm(TuneOptions& options, const v1::JobSpec& spec) {
  if (options.tracker.given()) return std::nullopt;
  std::filesystem::path records = options.records;
  if (records.empty()) {
    HONE_ASSIGN_OR_RETURN(records, records::DefaultRecordsPath());
  }
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(spec.target()));
  HONE_ASSIGN_OR_RETURN(LocalFarm farm, LocalFarm::Start({.records = records,
                                                          .threads = spec.threads(),
                                                          .devices = {target::DeviceOf(target)},
                                                          .reproducers = options.model.reproducers}));
  options.tracker.address = farm.address();
  return std::optional<LocalFarm>(std::move(farm));
}

absl::StatusOr<std::vector<v1::JobSpec>> Specs(TuneOptions& options) {
  if (!options.tracker.given() && options.model.targets.size() > 1) {
    return UsageError("several --target are for a farm: give its --tracker; this machine is one device");
  }
  std::vector<v1::Device> known;
  if (AsksForKinds(options.model, options.search)) {
    HONE_ASSIGN_OR_RETURN(known, KnownDevices(options.tracker));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(options.model, options.search, known));
  return MakeJobSpecs(options.model, options.search, parts);
}

absl::Status Tune(TuneOptions options) {
  if (options.tracker.given() && !options.records.empty()) {
    return UsageError("--records and --tracker exclude each other: a tracker keeps the records of its farm");
  }
  if (options.tracker.given() && !options.model.reproducers.empty()) {
    return UsageError(
        "--reproducers and --tracker exclude each other: tuners of that farm compile the candidates; give it to them "
        "(hone-tuner --reproducers)");
  }
  if (!options.tracker.given() && !options.search.devices.empty()) {
    return UsageError("--device names devices of a farm: give its --tracker; without one, --target says what is tuned");
  }
  std::vector<std::string> inputs = options.model.Files();
  inputs.insert(inputs.end(), options.search.hints.begin(), options.search.hints.end());
  HONE_RETURN_IF_ERROR(CheckIsNoInput(options.records, inputs));
  if (!options.search.HasEnd()) options.search.time = "10m";
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::JobSpec> specs, Specs(options));
  const Interrupts interrupts;
  HONE_ASSIGN_OR_RETURN(std::optional<LocalFarm> farm, StartFarm(options, specs.front()));
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  JobClient client(channel, options.tracker.address);
  // A farm waits until somebody has freed the disk. Here somebody waits for this command.
  const absl::Duration longest = farm.has_value() ? kLongestTrouble : kSubmitPatience;
  const auto persists = [&](absl::Duration refused) { return !interrupts.Seen() && refused < longest; };
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, client.Submit(specs, persists));
  JobView view(jobs.size());
  OwnDevice device(client);
  bool cancelled = false;
  const auto idle = [&]() -> absl::Status {
    if (interrupts.Seen() && !cancelled) {
      cancelled = true;
      PrintMessage("\nstopping; everything measured so far is kept\n");
      for (const v1::Job& job : jobs) HONE_RETURN_IF_ERROR(client.Cancel(job.id()).status());
    }
    if (!farm.has_value()) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(farm->Check());
    return device.Check();
  };
  absl::Time stored = absl::Now();
  const auto heard = [&](const v1::WatchJobResponse& response) -> absl::Status {
    view.Show(response);
    device.Hear(response.job());
    if (response.trouble().empty()) stored = absl::Now();
    const bool give_up = farm.has_value() && absl::Now() - stored > kLongestTrouble;
    return give_up ? absl::ResourceExhaustedError(response.trouble()) : absl::OkStatus();
  };
  const auto ended = client.Watch(jobs, heard, idle);
  view.Finish();
  HONE_RETURN_IF_ERROR(ended.status());
  HONE_RETURN_IF_ERROR(options.json ? PrintJson(JobsToJson(*ended)) : PrintText(JobsToText(*ended)));
  return FailureAmong(*ended);
}

}  // namespace

void AddTuneCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "search for the fastest kernels of a model and record them");
  options->model.AddTo(command, ModelOptions::Count::kOne, ModelOptions::Count::kSeveral);
  options->tracker.AddTo(command, false);
  options->search.AddTo(command);
  command->add_option("--records", options->records, "records file (default: ~/.local/share/hone/records.db)")
      ->check(NotEmpty);
  options->model.AddReproducersTo(command);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Tune(*options); });
}

}  // namespace hone::cli
