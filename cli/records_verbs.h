// SPDX-License-Identifier: Apache-2.0
// The verbs of `hone records` that only print or copy records (records_command.cc). Each is in a source file of its
// own. The others, which other commands use too, are in records_show.h and records_lock.h.
#ifndef HONE_CLI_RECORDS_VERBS_H_
#define HONE_CLI_RECORDS_VERBS_H_

#include "absl/status/status.h"
#include "cli/records_options.h"

namespace hone::cli {

// `hone records export` and `import`: write records to, and read them from, a file with one JSON document per line.
absl::Status RunExport(const RecordsOptions& options);
absl::Status RunImport(const RecordsOptions& options);

// `hone records prune`: deletes records from a file without changing which record wins.
absl::Status RunPrune(const RecordsOptions& options);

// `hone records verify`: checks that a records file is intact, and that the schedules a compilation would take from it
// still apply.
absl::Status RunVerify(const RecordsOptions& options);

// `hone records why`: shows for each winning record the other candidates, their times, and the rule that decided
// (records/winner.h).
absl::Status RunWhy(const RecordsOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_VERBS_H_
