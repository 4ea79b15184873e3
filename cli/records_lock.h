// SPDX-License-Identifier: Apache-2.0
// `hone records lock`: pins what a compilation would take from the records now (lock_file.h).
#ifndef HONE_CLI_RECORDS_LOCK_H_
#define HONE_CLI_RECORDS_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/lock_file.h"
#include "cli/model_options.h"
#include "cli/records_options.h"
#include "deploy/package/compile_kernels.h"

namespace hone::cli {

absl::Status RunLock(const RecordsOptions& options);

// The other end: what to compile with a lock file, with exactly its schedules. For the targets that `model` names,
// which must be in the file; for all of the file where it names none. FailedPrecondition: another version of the
// compiler made it. path: for messages.
absl::StatusOr<std::vector<package::KernelOptions>> LockedTargets(const LockFile& lock, const std::string& path,
                                                                  const ModelOptions& model);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_LOCK_H_
