// SPDX-License-Identifier: Apache-2.0
// What `tune` and `submit` ask a farm for: one job per model and per kind of device, made of the command line.
//
// A job has one target, since what a model is made of depends on it. Several of one submission are a group, which
// people see, watch and cancel as one; to the farm each is a job like any other. Start at PartsOf.
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

// How long to search, what, and where.
struct SearchOptions {
  int64_t trials = 0;  // of each job; 0: no limit
  std::string time;    // "10m", of each job; empty: no limit
  std::string until;   // "07:00" (until.h); empty: no such time
  uint64_t seed = 1;
  int priority = 0;
  std::string space = "all";         // or "template", "sketch"
  std::string without;               // parts of the search (tuner/search_parts.h), "model,descent"; empty: none
  std::vector<std::string> devices;  // words of tracker/queue/matches.h
  std::vector<std::string> hints;    // files: logs of other tuners
  bool HasEnd() const { return trials > 0 || !time.empty() || !until.empty(); }
  void AddTo(CLI::App* command);
};

// What one job tunes for, and which devices may measure for it.
struct Part {
  target::Target target;
  std::vector<std::string> devices;  // as --device has them, any of them; none: any device
  std::string device_kind;           // digest of a fingerprint; empty: any kind
};

// With --target, one part for each, on all the devices that were asked for. Without, one for each kind of them: `known`
// says which those are, and what is compiled for them. Without --device either, this host's CPU.
absl::StatusOr<std::vector<Part>> PartsOf(const ModelOptions& model, const SearchOptions& search,
                                          const std::vector<v1::Device>& known);
// Whether PartsOf looks at `known`.
inline bool AsksForKinds(const ModelOptions& model, const SearchOptions& search) {
  return model.targets.empty() && !search.devices.empty();
}

// Of all models and parts, each with every distinct workload of its model and its count, and with the hints that there
// are; several are a group. A time that is none is told before a model is read.
absl::StatusOr<std::vector<v1::JobSpec>> MakeJobSpecs(const ModelOptions& model, const SearchOptions& search,
                                                      const std::vector<Part>& parts);

}  // namespace hone::cli

#endif  // HONE_CLI_SUBMISSION_H_
