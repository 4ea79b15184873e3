// SPDX-License-Identifier: Apache-2.0
#include "cli/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/identity.h"
#include "base/one_line.h"
#include "base/parse_duration.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/farm_devices.h"
#include "cli/hint_files.h"
#include "cli/model_source.h"
#include "cli/model_workloads.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/until.h"
#include "compiler/graph/check_onnx.h"
#include "proto/convert.h"
#include "tuner/search_parts.h"

namespace hone::cli {
namespace {

// One part for each kind of device that --device selects. A name or label that matches no known device is an error,
// because its target is unknown and the job might wait for ever.
absl::StatusOr<std::vector<Part>> PartsByKind(const ModelOptions& model, const SearchOptions& search,
                                              const std::vector<v1::Device>& known) {
  std::map<std::string, Part> parts;  // by kind and target: agents of one kind may be started with different targets
  for (const std::string& words : search.devices) {
    const absl::StatusOr<std::vector<v1::Device>> meant = SelectDevices(known, words);
    if (!meant.ok()) {
      return absl::NotFoundError(fmt::format("{}. For a device that will join later, give its --target",
                                             std::string(meant.status().message())));
    }
    for (const v1::Device& device : *meant) {
      HONE_ASSIGN_OR_RETURN(target::Target target, TargetOf(device, model.threads));
      const std::string& kind = device.state().fingerprint().digest();
      Part& part = parts[kind + target::Print(target)];
      part.target = std::move(target);
      part.device_kind = kind;
      const bool listed = std::find(part.devices.begin(), part.devices.end(), words) != part.devices.end();
      if (!listed) part.devices.push_back(words);
    }
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
    const std::optional<absl::Duration> time = ParsePositiveDuration(search.time);
    if (!time.has_value()) {
      return UsageError(fmt::format("--time {}: write a duration such as 90s, 10m, 1h30m or 2d", search.time));
    }
    *spec.mutable_time_budget() = ToProto(*time);
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
    added->mutable_nodes()->Assign(workload.nodes.begin(), workload.nodes.end());
    added->set_sizes(PrintSizePoints(workload.points));
    all += workload.digest;
  }
  spec.set_model_digest(Sha256Hex(all));
}

// The job for these workloads of one model and part, without its time limits, which are the same for all jobs (SetEnd).
v1::JobSpec MakeJobSpec(const std::vector<ModelWorkload>& workloads, const std::string& path,
                        const SearchOptions& search, const Part& part) {
  v1::JobSpec spec;
  spec.set_request_id(RandomId());
  spec.set_name(FileNameOf(path));
  spec.set_target(target::Print(part.target));
  spec.set_threads(part.target.threads);
  spec.set_seed(search.seed);
  spec.set_priority(search.priority);
  if (search.space != "all") (*spec.mutable_options())["space"] = search.space;
  if (!search.without.empty()) (*spec.mutable_options())[std::string(tuner::kWithoutOption)] = search.without;
  spec.mutable_devices()->Assign(part.devices.begin(), part.devices.end());
  spec.set_device_kind(part.device_kind);
  SetWorkloads(workloads, spec);
  return spec;
}

// The jobs for one model and part.
absl::StatusOr<std::vector<v1::JobSpec>> JobSpecsOf(const ModelOptions& model, const std::string& path,
                                                    const SearchOptions& search, const Part& part) {
  std::vector<v1::JobSpec> specs;
  if (part.other_units.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::vector<ModelWorkload> workloads, WorkloadsOf(model, path, part.target, search.at));
    specs.push_back(MakeJobSpec(workloads, path, search, part));
    return specs;
  }
  std::vector<target::Target> units = {part.target};
  units.insert(units.end(), part.other_units.begin(), part.other_units.end());
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<ModelWorkload>> workloads,
                        WorkloadsByUnit(model, path, units, search.at));
  for (size_t i = 0; i < units.size(); ++i) {
    Part unit = part;
    unit.target = units[i];
    const bool is_last_chance = specs.empty() && i + 1 == units.size();  // a model without kernels is a job, too
    if (!workloads[i].empty() || is_last_chance) specs.push_back(MakeJobSpec(workloads[i], path, search, unit));
  }
  return specs;
}

// Adds what the tuner needs to compile the whole model. If that cannot be sent, a message says why.
void AddModelSource(const ModelOptions& model, const std::string& path, v1::JobSpec& spec) {
  absl::StatusOr<v1::ModelSource> source = SourceOf(model, path);
  if (source.ok()) {
    *spec.mutable_model() = *std::move(source);
  } else {
    PrintMessage(
        fmt::format("the whole model will not be measured: {}: {}\n", path, std::string(source.status().message())));
  }
}

// Leaves out the texts "NAME=..." for inputs that the model lacks and another model has. A name that no model has
// stays, and is an error where the model is read.
void LeaveOutInputsOfOthers(const std::set<std::string>& own, const std::set<std::string>& all,
                            std::vector<std::string>& texts) {
  std::erase_if(texts, [&](const std::string& text) {
    // The element i of a sequence is named "NAME.i".
    const std::string name = text.substr(0, text.find('=')), sequence = name.substr(0, name.rfind('.'));
    const auto is_among = [&](const std::set<std::string>& names) {
      return names.contains(name) || names.contains(sequence);
    };
    return is_among(all) && !is_among(own);
  });
}

// The options for each of the models, in their order: one --shape or --bind need not fit all models of a submission.
absl::StatusOr<std::vector<ModelOptions>> OptionsByModel(const ModelOptions& model) {
  std::vector<ModelOptions> result(model.models.size(), model);
  if (model.models.size() < 2 || (model.shapes.empty() && model.bindings.empty())) return result;
  std::vector<std::set<std::string>> names;
  std::set<std::string> all;
  for (const std::string& path : model.models) {
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> inputs, graph::InputNames(path));
    all.insert(inputs.begin(), inputs.end());
    names.emplace_back(inputs.begin(), inputs.end());
  }
  for (size_t i = 0; i < result.size(); ++i) {
    LeaveOutInputsOfOthers(names[i], all, result[i].shapes);
    LeaveOutInputsOfOthers(names[i], all, result[i].bindings);
  }
  return result;
}

// The refusals of all models as one error.
absl::Status JoinRefusals(const std::vector<absl::Status>& refused) {
  if (refused.empty()) return absl::OkStatus();
  if (refused.size() == 1) return refused.front();
  std::string text = fmt::format("{} models cannot be compiled:", refused.size());
  for (const absl::Status& status : refused) text += fmt::format("\n{}", std::string(status.message()));
  return absl::Status(refused.front().code(), text);
}

}  // namespace

void SearchOptions::AddTo(CLI::App* command) {
  command->add_option("--trials", trials, "largest number of candidates to measure in each job; 0: no limit")
      ->check(IntegerInRange(uint64_t{1} << 40));
  command->add_option("--time", time, "longest time to tune, without waiting: 90s, 10m, 1h30m")->check(NotEmpty);
  command
      ->add_option("--until", until,
                   "time at which to end with the best results so far: 07:00, or 2027-01-31T07:00:00+01:00")
      ->check(NotEmpty);
  command
      ->add_option("--device", devices,
                   "device of the farm to tune on; without --target, its target is used: AGENT, AGENT/DEVICE, LABEL or "
                   "NAME=VALUE; may be repeated, one match is enough; A,B must both match")
      ->expected(1)
      ->check(NotEmpty)
      ->take_all();
  command->add_option("--seed", seed, "seed of the search")->check(IntegerInRange(UINT64_MAX))->capture_default_str();
  command
      ->add_option("--space", space,
                   "which schedules to search: all, template (written for an operator) or sketch (derived for any)")
      ->check(CLI::IsMember({"all", "template", "sketch"}))
      ->capture_default_str();
  command
      ->add_option("--without", without,
                   "parts of the search to turn off, to measure their benefit, separated by commas: " +
                       tuner::PartNames() + "; all turns off every part and leaves a random search")
      ->check([](const std::string& names) {
        const absl::StatusOr<tuner::SearchParts> parts = tuner::PartsWithout(names);
        return parts.ok() ? std::string() : std::string(parts.status().message());
      });
  command
      ->add_option("--at", at,
                   "shape of an input with open dimensions at which kernels are timed, as name=1,128; spaces separate "
                   "several inputs; may be repeated, and the sum of the times decides; by default, the geometric "
                   "middle and the end of every range")
      ->expected(1)
      ->check(NotEmpty)
      ->take_all();
  command
      ->add_option(
          "--hints", hints,
          "log of AutoTVM or Ansor, or tuning records of MetaSchedule; its tile sizes are tried first; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--no-confirm{false}", confirm,
                    "do not send the model and do not run it as a whole at the end; the figures are sums of kernels");
}

absl::StatusOr<std::vector<Part>> PartsOf(const ModelOptions& model, const SearchOptions& search,
                                          const std::vector<v1::Device>& known) {
  if (NeedsKnownDevices(model, search)) return PartsByKind(model, search, known);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<target::Target>> lists, model.TargetLists());
  std::vector<Part> parts;
  for (const std::vector<target::Target>& list : lists) {
    HONE_RETURN_IF_ERROR(model.PlacementOn(list).status());
    parts.push_back({list.front(), search.devices, "", {list.begin() + 1, list.end()}});
  }
  return parts;
}

absl::StatusOr<std::vector<v1::JobSpec>> MakeJobSpecs(const ModelOptions& model, const SearchOptions& search,
                                                      const std::vector<Part>& parts) {
  v1::JobSpec end;  // parsed once: reading models takes time, and 07:00 could then mean the next day
  HONE_RETURN_IF_ERROR(SetEnd(search, end));
  std::vector<v1::JobSpec> specs;
  HONE_ASSIGN_OR_RETURN(const std::vector<tuner::TiledTask> hints, ReadHintFiles(search.hints));
  std::vector<absl::Status> refused;  // per model that cannot be compiled
  HONE_ASSIGN_OR_RETURN(const std::vector<ModelOptions> by_model, OptionsByModel(model));
  for (size_t i = 0; i < by_model.size(); ++i) {
    for (const Part& part : parts) {
      absl::StatusOr<std::vector<v1::JobSpec>> of_part = JobSpecsOf(by_model[i], model.models[i], search, part);
      if (!of_part.ok()) {
        if (of_part.status().GetPayload(kUsageMark).has_value()) return of_part.status();
        refused.push_back(of_part.status());
        break;  // the other parts would give the same reasons
      }
      for (v1::JobSpec& spec : *of_part) {
        spec.MergeFrom(end);
        if (!search.hints.empty()) HONE_RETURN_IF_ERROR(AddHints(hints, spec));
        if (search.confirm && part.other_units.empty()) AddModelSource(by_model[i], model.models[i], spec);
        specs.push_back(std::move(spec));
      }
    }
  }
  HONE_RETURN_IF_ERROR(JoinRefusals(refused));
  if (specs.size() < 2) return specs;
  const std::string group = "g" + RandomId().substr(0, 8);  // short, because users type it
  for (v1::JobSpec& spec : specs) spec.set_group(group);
  return specs;
}

}  // namespace hone::cli
