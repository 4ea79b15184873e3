// SPDX-License-Identifier: Apache-2.0
// `hone records prune`: makes room in a records file, without changing what wins.
#ifndef HONE_CLI_RECORDS_PRUNE_H_
#define HONE_CLI_RECORDS_PRUNE_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunPrune(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_PRUNE_H_
