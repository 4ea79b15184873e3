// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/call_tracker.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/device_run.h"
#include "cli/file_sender.h"
#include "cli/interrupts.h"
#include "cli/model_packages.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "cli/timed_run_options.h"
#include "cli/tracker_command.h"
#include "cli/tracker_options.h"
#include "hone/v1/fleet_watch.grpc.pb.h"
#include "proto/convert.h"
#include "tracker/queue/night_verdict.h"
#include "tracker/watch_json.h"

namespace hone::cli {
namespace {

using Stub = v1::FleetWatchService::Stub;

struct WatchFleetOptions {
  TrackerOptions tracker;
  TimedRunOptions runs;
  std::vector<std::string> devices;
  std::string name, device, at = "02:00", notify;
  double slower_than = 3;  // percent
  bool json = false;
};

// Makes one call of the service.
template <typename Request, typename Response>
absl::StatusOr<Response> CallWatches(WatchFleetOptions& options,
                                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                     const Request& request) {
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  const auto stub = v1::FleetWatchService::NewStub(channel);
  return CallTracker(*stub, method, request, options.tracker.address);
}

std::string MinuteText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", FromProto(time), absl::UTCTimeZone());
}

std::string VerdictText(v1::FleetVerdict verdict) {
  switch (verdict) {
    case v1::FLEET_VERDICT_CHANGED:
      return "changed environment";
    case v1::FLEET_VERDICT_DID_NOT_RUN:
      return "did not run";
    default:
      return tracker::VerdictName(verdict);
  }
}

std::string ChangeText(const v1::FleetNight& night) {
  return night.reference_seconds() > 0 ? fmt::format("{:+.1f}%", night.change() * 100) : "-";
}

std::string SecondsText(double seconds) { return seconds > 0 ? Latency(seconds) : "-"; }

// The verdict of a night, with its cause.
std::string NightVerdictText(const v1::FleetNight& night) {
  return fmt::format("{}{}{}{}", VerdictText(night.verdict()), night.accepted() ? ", accepted" : "",
                     night.cause().empty() ? "" : ": ", night.cause());
}

// The verdict of the newest night, and what the open job waits for.
std::string StateText(const v1::FleetWatchDevice& device) {
  std::string text = device.nights().empty() ? "not measured yet" : NightVerdictText(*device.nights().rbegin());
  if (device.open_job().empty()) return text;
  return fmt::format("{} ({} {})", text, device.open_job(),
                     device.waiting_for().empty() ? "measures now" : "waits for " + device.waiting_for());
}

std::string WatchesTable(const std::vector<v1::FleetWatch>& watches) {
  std::string text = fmt::format("{:<20} {:<20} {:>9} {:>9} {:>7}  {:<16}  {}\n", "watch", "device", "median",
                                 "reference", "change", "next (UTC)", "verdict");
  for (const v1::FleetWatch& watch : watches) {
    for (const v1::FleetWatchDevice& device : watch.devices()) {
      const v1::FleetNight* night = tracker::NewestMeasuredNight(device);
      text += Row("{:<20} {:<20} {:>9} {:>9} {:>7}  {:<16}  {}", watch.spec().name(), device.device(),
                  SecondsText(night == nullptr ? 0 : night->median_seconds()),
                  SecondsText(night == nullptr ? 0 : night->reference_seconds()),
                  night == nullptr ? "-" : ChangeText(*night), MinuteText(watch.next()), StateText(device));
    }
  }
  return text;
}

std::string NightsText(const v1::FleetWatch& watch) {
  const v1::FleetWatchSpec& spec = watch.spec();
  std::string text =
      Row("{}: {} of {}, every day at {} UTC for {:g} s, next {}; a slow-down by more than {:g}% is reported{}",
          spec.name(), spec.run().packages().empty() ? "" : spec.run().packages(0).name(), spec.submitted_by(),
          spec.at(), spec.run().seconds(), MinuteText(watch.next()), spec.slower_than() * 100,
          spec.notify_url().empty() ? "" : " to " + spec.notify_url());
  for (const v1::FleetWatchDevice& device : watch.devices()) {
    text += Row("{}: {}", device.device(), StateText(device));
    for (const v1::FleetNight& night : device.nights()) {
      text += Row("  {:<16}  {:>9} {:>7}  {}", MinuteText(night.due()), SecondsText(night.median_seconds()),
                  ChangeText(night), NightVerdictText(night));
    }
  }
  return text;
}

absl::Status PrintWatch(const WatchFleetOptions& options, const v1::FleetWatch& watch) {
  return options.json ? PrintJson(tracker::FleetWatchToJson(watch)) : PrintText(WatchesTable({watch}));
}

absl::Status ListWatches(WatchFleetOptions& options) {
  HONE_ASSIGN_OR_RETURN(const v1::ListFleetWatchesResponse response,
                        CallWatches(options, &Stub::List, v1::ListFleetWatchesRequest()));
  const std::vector<v1::FleetWatch> watches(response.watches().begin(), response.watches().end());
  if (options.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const v1::FleetWatch& watch : watches) list.push_back(tracker::FleetWatchToJson(watch));
    return PrintJson({{"watches", list}});
  }
  if (watches.empty()) {
    PrintMessage("the tracker watches no package yet; add one: hone watch-fleet add NAME PACKAGE --device DEVICE\n");
  }
  return PrintText(WatchesTable(watches));
}

absl::Status AddWatch(WatchFleetOptions& options) {
  if (options.devices.empty()) return UsageError("--device: name a device; hone devices lists them");
  if (IsModel(options.runs.package)) {
    return UsageError("PACKAGE: every night measures the same package; make one of the model first: hone compile");
  }
  HONE_ASSIGN_OR_RETURN(v1::RunTask task, TaskOf(options.runs));
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  const Interrupts interrupts;
  const StopOnInterrupt stop(interrupts);
  FileSender sender(channel, stop.token());
  v1::AddFleetWatchRequest request;
  v1::FleetWatchSpec& spec = *request.mutable_spec();
  spec.set_name(options.name);
  HONE_ASSIGN_OR_RETURN(*task.add_packages(), sender.Send(options.runs.package));
  if (!options.runs.input.empty()) {
    HONE_ASSIGN_OR_RETURN(*task.mutable_inputs(), sender.Send(options.runs.input));
  }
  *spec.mutable_run() = std::move(task);
  spec.mutable_devices()->Assign(options.devices.begin(), options.devices.end());
  spec.set_at(options.at);
  spec.set_slower_than(options.slower_than / 100);
  spec.set_notify_url(options.notify);
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch, CallWatches(options, &Stub::Add, request));
  return PrintWatch(options, watch);
}

absl::Status ShowWatch(WatchFleetOptions& options) {
  v1::GetFleetWatchRequest request;
  request.set_name(options.name);
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch, CallWatches(options, &Stub::Get, request));
  return options.json ? PrintJson(tracker::FleetWatchToJson(watch)) : PrintText(NightsText(watch));
}

absl::Status RunWatch(WatchFleetOptions& options) {
  v1::RunFleetWatchRequest request;
  request.set_name(options.name);
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch, CallWatches(options, &Stub::Run, request));
  return PrintWatch(options, watch);
}

absl::Status AcceptNight(WatchFleetOptions& options) {
  v1::AcceptFleetWatchRequest request;
  request.set_name(options.name);
  request.set_device(options.device);
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch, CallWatches(options, &Stub::Accept, request));
  return PrintWatch(options, watch);
}

absl::Status RemoveWatch(WatchFleetOptions& options) {
  v1::RemoveFleetWatchRequest request;
  request.set_name(options.name);
  HONE_RETURN_IF_ERROR(CallWatches(options, &Stub::Remove, request).status());
  return options.json ? PrintJson({{"name", options.name}, {"removed", true}}) : absl::OkStatus();
}

void AddNameTo(CLI::App* command, WatchFleetOptions& options) {
  command->add_option("NAME", options.name, "name of the watch")->required()->check(NotEmpty);
}

void AddAddCommand(CLI::App& parent, absl::Status* result) {
  const auto options = std::make_shared<WatchFleetOptions>();
  options->runs.seconds = 20;
  CLI::App* add = parent.add_subcommand("add", "measure a package again every night on named devices");
  add->add_option("NAME", options->name, "name of the new watch: letters, digits, '.', '_' and '-'")
      ->required()
      ->check(NotEmpty);
  options->runs.AddTo(add);
  options->tracker.AddTo(add, TrackerOptions::Need::kRequired);
  add->add_option("--device", options->devices,
                  "a device to measure on: AGENT, AGENT/DEVICE, LABEL or NAME=VALUE, where several match all of them; "
                  "may be given again")
      ->check(NotEmpty)
      ->expected(1)
      ->take_all();
  add->add_option("--at", options->at, "time of day of the measurement, UTC, by the tracker's clock")
      ->check(NotEmpty)
      ->capture_default_str();
  add->add_option("--slower-than", options->slower_than, "the slow-down in percent that is reported as a regression")
      ->transform(CLI::Validator(WithoutPercentSign, "", "percent"))
      ->check(CLI::Range(0.1, 1000.0))
      ->check(NoNan)
      ->capture_default_str();
  add->add_option(
         "--notify", options->notify,
         "URL to which JSON is posted when the package is slower, drifts or runs in a changed environment, and "
         "when it is good again; the farm's owner must allow it")
      ->check(NotEmpty);
  add->callback([options, result] {
    options->json = options->runs.json;
    *result = AddWatch(*options);
  });
}

}  // namespace

void AddWatchFleetCommand(CLI::App& app, absl::Status* result) {
  auto options = std::make_shared<WatchFleetOptions>();
  CLI::App* watches =
      app.add_subcommand("watch-fleet", "list the packages that a tracker measures again every night, or change them");
  watches->require_subcommand(0, 1);
  options->tracker.AddTo(watches, TrackerOptions::Need::kRequired);
  watches->add_flag("--json", options->json, "print one JSON document and nothing else");
  watches->callback([options, watches, result] {
    if (watches->get_subcommands().empty()) *result = ListWatches(*options);
  });
  AddAddCommand(*watches, result);
  options = std::make_shared<WatchFleetOptions>();
  AddNameTo(AddTrackerCommand(*watches, "show", "show every night of a watch", options, ShowWatch, result), *options);
  options = std::make_shared<WatchFleetOptions>();
  AddNameTo(AddTrackerCommand(*watches, "run", "measure a watch now, and return at once", options, RunWatch, result),
            *options);
  options = std::make_shared<WatchFleetOptions>();
  CLI::App* accept = AddTrackerCommand(
      *watches, "accept", "take the newest night as good: later nights are compared with it, and with none before it",
      options, AcceptNight, result);
  AddNameTo(accept, *options);
  accept->add_option("--device", options->device, "AGENT/DEVICE as the list names it; every device by default")
      ->check(NotEmpty);
  options = std::make_shared<WatchFleetOptions>();
  AddNameTo(AddTrackerCommand(*watches, "remove", "remove a watch with its nights", options, RemoveWatch, result),
            *options);
}

}  // namespace hone::cli
