// SPDX-License-Identifier: Apache-2.0
// `hone records why`: for each winner its rivals, with numbers and what decided between them (records/winner.h).
#ifndef HONE_CLI_RECORDS_WHY_H_
#define HONE_CLI_RECORDS_WHY_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunWhy(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_WHY_H_
