// SPDX-License-Identifier: Apache-2.0
// `hone records best|query|why|stats|export|import|verify|prune|lock`: shows and maintains tuning records.
//
// This room has only options and output; records/store.h and records/jsonl.h do the work. The records come from
// --records, from --tracker, or from the default file (records/default_path.h). All verbs except `import` and
// `prune --yes` only read, so they work on a file while a tracker writes it.
#ifndef HONE_CLI_RECORDS_COMMAND_H_
#define HONE_CLI_RECORDS_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

// Follows cli/command.h. `app` and `result` outlive the parse.
void AddRecordsCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_COMMAND_H_
