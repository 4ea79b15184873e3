// SPDX-License-Identifier: Apache-2.0
// The live display of running jobs on standard error. On a terminal it is a picture that is redrawn in place: best
// latency so far, each workload, failures of candidates, time left. Elsewhere it is a line per job every ten seconds;
// with HONE_PROGRESS=json a JSON document per job every second.
//
// Picture is a pure function that makes the lines; JobView writes to the terminal. The results of ended jobs are in
// job_text.h and go to standard output.
#ifndef HONE_CLI_JOB_VIEW_H_
#define HONE_CLI_JOB_VIEW_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "cli/progress_line.h"
#include "hone/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// The size of the terminal in characters. The default is used if the system does not report it.
struct Screen {
  size_t columns = 80, rows = 24;
};

// One line about a running job, for output that cannot be redrawn.
std::string Line(const v1::WatchJobResponse& heard, absl::Time now);

// The same facts for a program that shows the progress itself. `share` is the part of the job's time that has passed, 0
// to 1; null if the job has no limit.
nlohmann::ordered_json ProgressOf(const v1::WatchJobResponse& heard, absl::Time now);

// The lines of the picture, which fit the screen. Every job has a heading. The rows left over show workloads, sorted by
// their share of the model's time, the largest first.
std::vector<std::string> Picture(const std::vector<v1::WatchJobResponse>& jobs, Screen screen, absl::Time now);

// Used by one thread. Finish and the destructor leave the last picture above the cursor, and the terminal in its normal
// state. Show after Finish starts a new picture below.
class JobView {
 public:
  // jobs: the number of jobs that will be shown. steady: the clock for the time between two pictures; tests replace it.
  explicit JobView(size_t jobs, std::function<absl::Time()> steady = SteadyNow);
  ~JobView() { Finish(); }
  JobView(const JobView&) = delete;
  JobView& operator=(const JobView&) = delete;

  void Show(const v1::WatchJobResponse& heard);
  void Finish();
  // Calls Finish, then prints the message below the picture. PrintTrackerAway prints that the tracker does not answer.
  void PrintBelow(std::string_view message);
  void PrintTrackerAway(const absl::Status& status);

 private:
  void Redraw();

  void ShowLine(const v1::WatchJobResponse& heard, absl::Time now);

  const ProgressForm form_;
  const bool several_;
  const std::function<absl::Time()> steady_;
  std::vector<v1::WatchJobResponse> newest_;  // the last answer for each job, in the order of their first answers
  std::map<std::string, absl::Time> next_;    // by job id: when its next line is due; unused on a terminal
  absl::Time next_picture_ = absl::InfinitePast();
  size_t drawn_ = 0;  // lines of the picture above the cursor; 0 = no picture
};

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_VIEW_H_
