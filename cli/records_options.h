// SPDX-License-Identifier: Apache-2.0
// The options that the verbs of `hone records` share. A verb is a function of them; records_command.cc has the list.
#ifndef HONE_CLI_RECORDS_OPTIONS_H_
#define HONE_CLI_RECORDS_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/farm_devices.h"
#include "cli/model_options.h"
#include "cli/record_source.h"
#include "records/source.h"

namespace hone::cli {

struct RecordsOptions {
  RecordSourceOptions source;
  bool json = false;
  bool csv = false;         // of best, query and stats
  records::Filter filter;   // without the target and the outcomes; the device in the words of people
  ModelOptions model;       // --model of the verbs that have it, and --target of all
  bool require = false;     // exit code 3 where a workload of the model has no record
  std::string failure;      // a kind, "any" or empty
  int64_t older_than = -1;  // of prune, days; -1: not given
  int64_t keep_best = -1;   // of prune; -1: not given
  bool yes = false;         // of prune
  std::string file = "-";   // of export, import and lock; "-" is the standard stream

  // The filter as records are asked with it; of a model, without the target. With --tracker, --device may be a name
  // that the farm has. Usage errors: an unknown kind of failure, and what is about a model without --model.
  absl::StatusOr<records::Filter> ResolvedFilter() const;
  // What the model is compiled for, each --target, and the device whose records are the nearest: `resolved` has the one
  // that was asked for. A name of the farm says both where no --target is given.
  absl::StatusOr<std::vector<DevicePlace>> Places(const records::Filter& resolved) const;
};

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_OPTIONS_H_
