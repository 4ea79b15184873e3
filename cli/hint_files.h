// SPDX-License-Identifier: Apache-2.0
// Reads the files of `--hints`: logs of other tuners. The search tries their tiles first (tuner/tvm_log.h,
// tuner/hints.h).
#ifndef HONE_CLI_HINT_FILES_H_
#define HONE_CLI_HINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/job.pb.h"
#include "tuner/tvm_log.h"

namespace hone::cli {

// The schedules of all files, the fastest first. For each file, standard error shows how many schedules were read, and
// which lines were skipped and why. kNotFound: a file cannot be opened. kDataLoss, or the parser's error with the
// file's name: a file cannot be read.
absl::StatusOr<std::vector<tuner::TiledTask>> ReadHintFiles(const std::vector<std::string>& files);

// Adds to each workload of the job the hints that fit it, and prints to standard error how many workloads have hints.
absl::Status AddHints(const std::vector<tuner::TiledTask>& tasks, v1::JobSpec& spec);

}  // namespace hone::cli

#endif  // HONE_CLI_HINT_FILES_H_
