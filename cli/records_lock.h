// SPDX-License-Identifier: Apache-2.0
// `hone records lock`: writes the schedules that a compilation would take from the records into a lock file
// (lock_file.h). Also the reverse: the options to compile with a lock file.
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

// The options to compile a model with exactly the schedules of a lock file, one element per target. The targets are
// those of `model`, which must be in the file, or all targets of the file if `model` names none. path: the file's, for
// messages. kFailedPrecondition: another version of the compiler made the file.
absl::StatusOr<std::vector<package::KernelOptions>> LockedTargets(const LockFile& lock, const std::string& path,
                                                                  const ModelOptions& model);

}  // namespace hone::cli

#endif  // HONE_CLI_RECORDS_LOCK_H_
