// SPDX-License-Identifier: Apache-2.0
// What records have for a model: each of its workloads with the record that a compilation would take, or without one.
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
    std::optional<records::NearestRecord> record;  // for this very target; none: missing
  };
  std::string target;
  std::vector<Entry> entries;  // in the order of the model
  size_t missing = 0;
};

// For options.model, which is given: of its workloads those whose digest and operator pass `filter`. Only records that
// pass it (its device and compiler) count; its target does not matter. Of several, the nearest to the
// device that is asked for, else to this machine.
absl::StatusOr<ModelRecords> FindModelRecords(const RecordsOptions& options, const records::Filter& filter,
                                              const records::Source& source);

// With --require: kRecordsMissing where some are. What to do is in the text.
absl::Status CheckRequired(const RecordsOptions& options, const ModelRecords& found);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_RECORDS_H_
