// SPDX-License-Identifier: Apache-2.0
// `hone records verify`: whether a records file is whole, and whether what would be taken from it still works.
#ifndef HONE_CLI_RECORDS_VERIFY_H_
#define HONE_CLI_RECORDS_VERIFY_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunVerify(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_VERIFY_H_
