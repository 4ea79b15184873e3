// SPDX-License-Identifier: Apache-2.0
// `hone records prune`: deletes records from a file without changing which record wins.
#ifndef HONE_CLI_RECORDS_PRUNE_H_
#define HONE_CLI_RECORDS_PRUNE_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunPrune(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_PRUNE_H_
