// SPDX-License-Identifier: Apache-2.0
// Looks up the records of a model: for each of its workloads, the record that a compilation would take, or none.
#ifndef HONE_CLI_MODEL_RECORDS_H_
#define HONE_CLI_MODEL_RECORDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/model_workloads.h"
#include "cli/records_options.h"

namespace hone::cli {

struct ModelRecords {
  struct Entry {
    ModelWorkload workload;
    std::optional<records::NearestRecord> record;  // for exactly this target; nullopt = missing
  };
  std::string target;
  std::vector<Entry> entries;  // in the order of the model
  size_t missing = 0;          // entries without a record
};

// Looks up the workloads of options.model, which must be given, whose digest and operator pass `filter`. Only records
// whose device and compiler pass `filter` count; the filter's target is ignored. Among several records, the one of the
// device nearest to --device is taken, or without --device the one nearest to this machine.
absl::StatusOr<ModelRecords> FindModelRecords(const RecordsOptions& options, const records::Filter& filter,
                                              const records::Source& source);

// With --require: a RecordsMissingError (command.h) if a workload has no record. Without it: always OK.
absl::Status CheckRequired(const RecordsOptions& options, const ModelRecords& found);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_RECORDS_H_
