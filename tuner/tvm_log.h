// SPDX-License-Identifier: Apache-2.0
// A reader of the logs of TVM's tuners: how each schedule that they measured tiled the loops of its task.
//
// Each line may have one of three formats: AutoTVM (JSON lines; tiles are knobs named after axes), Ansor, the
// auto-scheduler (JSON lines; the first multi-level tiling among the steps), or MetaSchedule (the tuning records of its
// JSON database; the decisions of its tile samples). The rest of a schedule is not read, because only TVM can run it.
// The result serves as hints (hints.h), never as records. Start with ReadTvmLog.
#ifndef HONE_TUNER_TVM_LOG_H_
#define HONE_TUNER_TVM_LOG_H_

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::tuner {

struct TiledAxis {
  int64_t extent = 1;
  int64_t inner = 1;  // iterations in the innermost tile; on a GPU, those of one thread
};

// A schedule that ran without an error.
struct TiledTask {
  // Convolutions: batch, rows, columns, channels. The product of all extents fits into int64_t.
  std::vector<TiledAxis> output;
  std::vector<int64_t> reduction;  // extents of the reduction loops
  double seconds = 0;              // mean time of its runs
};

struct TvmLog {
  std::vector<TiledTask> tasks;
  int64_t failed = 0;  // number of lines whose schedule failed in TVM
  // Numbers, from 1, of the lines that were not read, by reason: "task 'conv2d_winograd.x86' has no tiles known here".
  std::map<std::string, std::vector<int64_t>> unread;
};

// Reads any text. Lines that are not of such a log are listed as unread, except comments (#), empty lines and lines of
// MetaSchedule's file of workloads.
// ResourceExhausted: a line has more than 16 MiB.
absl::StatusOr<TvmLog> ReadTvmLog(std::istream& text);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TVM_LOG_H_
