// SPDX-License-Identifier: Apache-2.0
// What `--hints` names: logs of other tuners, whose tiles are tried first (tuner/tvm_log.h, tuner/hints.h).
#ifndef HONE_CLI_HINT_FILES_H_
#define HONE_CLI_HINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/job.pb.h"
#include "tuner/tvm_log.h"

namespace hone::cli {

// Of all files, the fastest first. Says on standard error what was read of each, and which lines were not and why.
// NotFound, or an error with a file's name, for one that cannot be read at all.
absl::StatusOr<std::vector<tuner::TiledTask>> ReadHintFiles(const std::vector<std::string>& files);

// Gives the job's workloads the hints that are for them, and says on standard error how many have some.
absl::Status AddHints(const std::vector<tuner::TiledTask>& tasks, v1::JobSpec& spec);

}  // namespace hone::cli

#endif  // HONE_CLI_HINT_FILES_H_
