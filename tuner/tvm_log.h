// SPDX-License-Identifier: Apache-2.0
// Logs of TVM's tuners: how each schedule that they measured tiled the loops of its task.
//
// Three formats, told apart line by line: AutoTVM (JSON lines; tiles are knobs named for axes), the auto-scheduler,
// Ansor (JSON lines; the first multi-level tiling among the steps), MetaSchedule (the tuning records of its JSON
// database; the decisions of its tile samples). Nothing else of a schedule is read: it is a program of TVM. What this
// says is a hint, never a record: hints.h finds the workloads it is for.
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
  int64_t inner = 1;  // how much of it the innermost tile has; of a lane's work, where there are lanes
};

// A schedule that ran without an error.
struct TiledTask {
  // Convolutions: batch, rows, columns, channels. The product of all extents fits into int64_t.
  std::vector<TiledAxis> output;
  std::vector<int64_t> reduction;  // extents of what is reduced over
  double seconds = 0;
};

struct TvmLog {
  std::vector<TiledTask> tasks;
  int64_t failed = 0;  // lines of schedules that failed there: read, and of no use
  // Lines that were not read, counted from 1, by the reason: "task 'conv2d_winograd.x86' has no tiles known here".
  std::map<std::string, std::vector<int64_t>> unread;
};

// Any text: what is no line of such a log is listed as unread, but for comments (#) and empty lines. ResourceExhausted
// for a line of more than 16 MiB.
absl::StatusOr<TvmLog> ReadTvmLog(std::istream& text);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TVM_LOG_H_
