// SPDX-License-Identifier: Apache-2.0
// What people see of jobs while they run, on standard error: on a terminal a picture that is redrawn in place (best so
// far, each workload, why candidates fail, time left); elsewhere a line for each job every ten seconds.
//
// What is drawn is pure (Picture), the terminal is JobView's. Ended jobs are told by job_text.h, on standard output.
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
#include "hone/v1/job.pb.h"

namespace hone::cli {

struct Screen {
  size_t columns = 80, rows = 24;
};

// The longest that a job can still run at the pace that it has: what is left of its time, of its trials, and until its
// last moment. Nullopt where nothing says so.
std::optional<absl::Duration> TimeLeft(const v1::Job& job, absl::Time now);

// One line, for where nothing can be redrawn.
std::string Line(const v1::WatchJobResponse& heard, absl::Time now);

// Lines that fit the screen. Every job has its head; workloads have what is left
// of the rows, those first that take most of the model's time.
std::vector<std::string> Picture(const std::vector<v1::WatchJobResponse>& jobs, Screen screen, absl::Time now);

// Used by one thread. The terminal is left as it was, with the last picture above the cursor, by Finish and by the end
// of the object. What is shown after Finish is a new picture, below.
class JobView {
 public:
  // jobs: how many will be shown; steady: the clock for when something is shown again, which nobody sets.
  explicit JobView(size_t jobs, std::function<absl::Time()> steady = SteadyNow);
  ~JobView() { Finish(); }
  JobView(const JobView&) = delete;
  JobView& operator=(const JobView&) = delete;

  void Show(const v1::WatchJobResponse& heard);
  void Finish();
  // Finishes, and says something else below the picture: a message, or that the tracker did not answer.
  void Tell(std::string_view message);
  void TellAway(const absl::Status& status);

 private:
  void Redraw();

  const bool in_place_, several_;
  const std::function<absl::Time()> steady_;
  std::vector<v1::WatchJobResponse> newest_;  // of each job, in the order they were first heard of
  std::map<std::string, absl::Time> next_;    // by job: when its next line is due
  absl::Time next_picture_ = absl::InfinitePast();
  size_t drawn_ = 0;  // lines above the cursor
};

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_VIEW_H_
