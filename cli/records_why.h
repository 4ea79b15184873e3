// SPDX-License-Identifier: Apache-2.0
// `hone records why`: shows for each winning record the other candidates, their times, and the rule that decided
// (records/winner.h).
#ifndef HONE_CLI_RECORDS_WHY_H_
#define HONE_CLI_RECORDS_WHY_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunWhy(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_WHY_H_
