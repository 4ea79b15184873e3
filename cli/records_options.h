// SPDX-License-Identifier: Apache-2.0
// The options that the verbs of `hone records` share. Each verb is a function that takes them; records_command.cc lists
// the verbs.
#ifndef HONE_CLI_RECORDS_OPTIONS_H_
#define HONE_CLI_RECORDS_OPTIONS_H_

#include <memory>
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
  bool csv = false;         // for best, query and stats
  records::Filter filter;   // as given: the device may be a name or label, target and outcomes are not set
  ModelOptions model;       // --model for the verbs that have it, and --target for all
  bool require = false;     // exit code 3 if a workload of the model has no record
  std::string failure;      // a kind of failure, or "any"; empty = not given
  int64_t older_than = -1;  // for prune, in days; -1 = not given
  int64_t keep_best = -1;   // for prune, a number of records; -1 = not given
  bool yes = false;         // for prune: delete, and do not only show what would be deleted
  std::string file = "-";   // for export, import and lock; "-" = standard input or output

  // The filter to query records with. With --model, its target is not set. With --tracker, --device may be a name or
  // label of the farm, and is replaced by the device's fingerprint. Usage errors: an unknown kind of failure, and
  // options that need --model without it.
  absl::StatusOr<records::Filter> ResolvedFilter() const;
  // Opens the records to read. With `require`, no records file is a RecordsMissingError (command.h).
  absl::StatusOr<std::unique_ptr<records::Source>> OpenToRead() const;
  // The targets to compile the model for (each --target), and for each the device whose records are preferred.
  // resolved: the result of ResolvedFilter. If --device names a device of the farm and no --target is given, the target
  // is that device's.
  absl::StatusOr<std::vector<DevicePlace>> Places(const records::Filter& resolved) const;
  // The same where a --target may join several: for each --target the places of the targets that it joins.
  absl::StatusOr<std::vector<std::vector<DevicePlace>>> PlaceLists(const records::Filter& resolved) const;
};

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_OPTIONS_H_
