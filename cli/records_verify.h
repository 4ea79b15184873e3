// SPDX-License-Identifier: Apache-2.0
// `hone records verify`: checks that a records file is intact, and that the schedules a compilation would take from it
// still apply.
#ifndef HONE_CLI_RECORDS_VERIFY_H_
#define HONE_CLI_RECORDS_VERIFY_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunVerify(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_VERIFY_H_
