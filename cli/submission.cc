#include "cli/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/identity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/hint_files.h"
#include "cli/model_workloads.h"
#include "cli/until.h"

namespace hone::cli {
namespace {

// What --device says, apart: names and labels.
Part Asked(const SearchOptions& search) {
  Part asked;
  for (const std::string& device : search.devices) {
    const size_t equals = device.find('=');
    if (equals == std::string::npos) {
      asked.devices.push_back(device);
    } else {
      asked.labels[device.substr(0, equals)] = device.substr(equals + 1);
    }
  }
  return asked;
}

std::string NameOf(const v1::Device& device) { return device.agent_id() + "/" + device.state().device_id(); }

bool HasLabels(const v1::Device& device, const Part& asked) {
  return std::all_of(asked.labels.begin(), asked.labels.end(), [&](const auto& label) {
    const auto found = device.state().labels().find(label.first);
    return found != device.state().labels().end() && found->second == label.second;
  });
}

absl::StatusOr<target::Target> TargetOf(const v1::Device& device, const ModelOptions& model) {
  if (device.state().target().empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "{} does not say what is compiled for it; give --target, or start its agent with --target", NameOf(device)));
  }
  absl::StatusOr<target::Target> target = target::ParseTarget(device.state().target());
  if (!target.ok()) return Annotate(target.status(), fmt::format("{} has a target unknown here", NameOf(device)));
  if (model.threads > 0) target->threads = model.threads;
  return target;
}

// Of the devices that were asked for, one part for each kind. A name or label of which there is no device yet would be
// waited for in vain, or for years: what to compile for it nobody knows.
absl::StatusOr<std::vector<Part>> PartsByKind(const ModelOptions& model, const Part& asked,
                                              const std::vector<v1::Device>& known) {
  std::map<std::string, Part> parts;  // by kind and target: an operator may want one kind tuned for in two ways
  const std::vector<std::string> names = asked.devices.empty() ? std::vector<std::string>{""} : asked.devices;
  for (const std::string& name : names) {
    bool found = false;
    for (const v1::Device& device : known) {
      if (!name.empty() && name != device.agent_id() && name != NameOf(device)) continue;
      if (!HasLabels(device, asked)) continue;
      found = true;
      HONE_ASSIGN_OR_RETURN(target::Target target, TargetOf(device, model));
      const std::string& kind = device.state().fingerprint().digest();
      Part& part = parts[kind + target::Print(target)];
      part.target = std::move(target);
      part.labels = asked.labels;
      part.device_kind = kind;
      const bool listed = std::find(part.devices.begin(), part.devices.end(), name) != part.devices.end();
      if (!name.empty() && !listed) part.devices.push_back(name);
    }
    if (found) continue;
    return absl::NotFoundError(
        fmt::format("the farm has had no device {}{}; `hone devices` lists them. For one that is to come, say with "
                    "--target what it "
                    "is",
                    name.empty() ? "with these labels" : fmt::format("'{}'", name),
                    name.empty() || asked.labels.empty() ? "" : " with these labels"));
  }
  std::vector<Part> list;
  for (auto& [key, part] : parts) list.push_back(std::move(part));
  return list;
}

absl::Status SetEnd(const SearchOptions& search, v1::JobSpec& spec) {
  spec.set_trials(search.trials);
  if (!search.until.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Time until, ParseUntil(search.until, absl::Now(), absl::LocalTimeZone()));
    spec.mutable_until()->set_seconds(absl::ToUnixSeconds(until));
  }
  if (!search.time.empty()) {
    absl::Duration time;
    if (!absl::ParseDuration(search.time, &time) || time <= absl::ZeroDuration()) {
      return UsageError(fmt::format("--time {}: write a duration such as 90s, 10m or 1h30m", search.time));
    }
    spec.mutable_time_budget()->set_seconds(absl::ToInt64Seconds(time));
  }
  return absl::OkStatus();
}

void SetWorkloads(const std::vector<ModelWorkload>& workloads, v1::JobSpec& spec) {
  std::string all;
  for (const ModelWorkload& workload : workloads) {
    v1::WorkloadSpec* added = spec.add_workloads();
    added->set_text(workload.text);
    added->set_digest(workload.digest);
    added->set_count(workload.calls);
    added->set_op(workload.op);
    added->set_title(workload.title);
    added->set_flops(workload.flops);
    all += workload.digest;
  }
  spec.set_model_digest(Sha256Hex(all));
}

}  // namespace

void SearchOptions::AddTo(CLI::App* command) {
  command->add_option("--trials", trials, "most candidates to measure, of each job; 0 for no limit")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--time", time, "longest time to tune, waiting not counted: 90s, 10m, 1h30m");
  command->add_option("--until", until, "when to end with what there is: 07:00, or 2027-01-31T07:00:00+01:00");
  command
      ->add_option("--device", devices,
                   "device of the farm to tune on, and without --target also for: AGENT or AGENT/DEVICE, several for "
                   "any of them; or LABEL=VALUE, several for all of them")
      ->expected(1)
      ->take_all();
  command->add_option("--seed", seed, "seed of the search")->capture_default_str();
  command
      ->add_option("--space", space,
                   "which schedules to search: all, template (written for an operator) or sketch (derived for any)")
      ->check(CLI::IsMember({"all", "template", "sketch"}))
      ->capture_default_str();
  command
      ->add_option("--hints", hints,
                   "log of AutoTVM or Ansor, or tuning records of MetaSchedule, whose tiles are tried first; may be "
                   "given again")
      ->expected(1)
      ->take_all();
}

absl::StatusOr<std::vector<Part>> PartsOf(const ModelOptions& model, const SearchOptions& search,
                                          const std::vector<v1::Device>& known) {
  const Part asked = Asked(search);
  if (AsksForKinds(model, search)) return PartsByKind(model, asked, known);
  HONE_ASSIGN_OR_RETURN(const std::vector<target::Target> targets, model.Targets());
  std::vector<Part> parts(targets.size(), asked);
  for (size_t i = 0; i < targets.size(); ++i) parts[i].target = targets[i];
  return parts;
}

absl::StatusOr<v1::JobSpec> MakeJobSpec(const ModelOptions& model, const std::string& path, const SearchOptions& search,
                                        const Part& part) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ModelWorkload> workloads, WorkloadsOf(model, path, part.target));
  v1::JobSpec spec;
  spec.set_request_id(RandomId());
  spec.set_name(std::filesystem::path(path).filename().string());
  spec.set_target(target::Print(part.target));
  spec.set_threads(part.target.threads);
  spec.set_seed(search.seed);
  spec.set_priority(search.priority);
  if (search.space != "all") (*spec.mutable_options())["space"] = search.space;
  spec.mutable_devices()->Assign(part.devices.begin(), part.devices.end());
  spec.mutable_labels()->insert(part.labels.begin(), part.labels.end());
  spec.set_device_kind(part.device_kind);
  HONE_RETURN_IF_ERROR(SetEnd(search, spec));
  SetWorkloads(workloads, spec);
  return spec;
}

absl::StatusOr<std::vector<v1::JobSpec>> MakeJobSpecs(const ModelOptions& model, const SearchOptions& search,
                                                      const std::vector<Part>& parts) {
  std::vector<v1::JobSpec> specs;
  HONE_ASSIGN_OR_RETURN(const std::vector<tuner::TiledTask> hints, ReadHintFiles(search.hints));
  for (const std::string& path : model.models) {
    for (const Part& part : parts) {
      HONE_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(model, path, search, part));
      if (!search.hints.empty()) HONE_RETURN_IF_ERROR(AddHints(hints, spec));
      specs.push_back(std::move(spec));
    }
  }
  if (specs.size() < 2) return specs;
  const std::string group = "g" + RandomId().substr(0, 8);  // short, since people type it
  for (v1::JobSpec& spec : specs) spec.set_group(group);
  return specs;
}

}  // namespace hone::cli
