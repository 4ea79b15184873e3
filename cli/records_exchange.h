// SPDX-License-Identifier: Apache-2.0
// `hone records export` and `import`: write records to, and read them from, a file with one JSON document per line.
#ifndef HONE_CLI_RECORDS_EXCHANGE_H_
#define HONE_CLI_RECORDS_EXCHANGE_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

absl::Status RunExport(const RecordsOptions& options);
absl::Status RunImport(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_EXCHANGE_H_
