// SPDX-License-Identifier: Apache-2.0
// Makes the jobs of `tune` and `submit` from the command line: one job per model and kind of device. Start at PartsOf.
//
// A job has one target, because the workloads of a model depend on the target. Several jobs of one submission form a
// group, which users see, watch and cancel as a whole. The farm treats each job of a group separately.
#ifndef HONE_CLI_SUBMISSION_H_
#define HONE_CLI_SUBMISSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/model_options.h"
#include "compiler/target/target.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/job.pb.h"

namespace hone::cli {

// The options of a search: its limits, its space, and its devices.
struct SearchOptions {
  int64_t trials = 0;  // limit for each job; 0 = no limit
  std::string time;    // time budget of each job, such as "10m"; empty = no limit
  std::string until;   // time of day or instant to end at, such as "07:00" (until.h); empty = none
  uint64_t seed = 1;
  int priority = 0;
  std::string space = "all";         // or "template", "sketch"
  std::string without;               // parts of the search to switch off (tuner/search_parts.h), as "model,descent"
  std::vector<std::string> devices;  // names and labels of devices (tracker/queue/matches.h); empty = any device
  std::vector<std::string> at;       // shapes at which kernels with open sizes are measured (size_points.h)
  std::vector<std::string> hints;    // paths of logs of other tuners
  bool confirm = true;               // the jobs end with a run of the whole model
  bool HasEnd() const { return trials > 0 || !time.empty() || !until.empty(); }
  void AddTo(CLI::App* command);
};

// The target of one job and the devices that may measure for it.
struct Part {
  target::Target target;
  std::vector<std::string> devices;              // values of --device, each an alternative; empty = any device
  std::string device_kind;                       // digest of the devices' fingerprint; empty = any kind
  std::vector<target::Target> other_units = {};  // targets that share the model with `target`; each gets its own job
};

// The parts of a submission. With --target: one part for each target, on all devices of --device. With --device only:
// one part for each kind of device among them; `known` gives the kinds and their targets. With neither: one part for
// this host's CPU. kNotFound: no device of `known` matches a --device.
absl::StatusOr<std::vector<Part>> PartsOf(const ModelOptions& model, const SearchOptions& search,
                                          const std::vector<v1::Device>& known);
// Whether PartsOf needs `known`: --device is given without --target.
inline bool NeedsKnownDevices(const ModelOptions& model, const SearchOptions& search) {
  return model.targets.empty() && !search.devices.empty();
}

// The jobs for all models and parts. Each job has every distinct workload of its model, the number of its calls, and
// the hints that fit it. A part that several targets share gives a job for each of them that computes a workload. Two
// or more jobs form a group. Wrong values of --time and --until are reported before a model is read. The files of the
// jobs' models are yet to be sent (SendModels). A model that several targets share is not run as a whole.
absl::StatusOr<std::vector<v1::JobSpec>> MakeJobSpecs(const ModelOptions& model, const SearchOptions& search,
                                                      const std::vector<Part>& parts);

}  // namespace hone::cli

#endif  // HONE_CLI_SUBMISSION_H_
