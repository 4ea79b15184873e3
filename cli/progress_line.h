// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a command in one line on standard error. On a terminal the line is rewritten in place and
// erased at the end; elsewhere a new line is printed every ten seconds. Work that ends before the first interval shows
// nothing.
//
// The display of running jobs is in job_view.h.
#ifndef HONE_CLI_PROGRESS_LINE_H_
#define HONE_CLI_PROGRESS_LINE_H_

#include <functional>
#include <string_view>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace hone::cli {

// The interval between two updates: kRedrawInterval on a terminal that can redraw, kLineInterval elsewhere.
inline constexpr absl::Duration kRedrawInterval = absl::Milliseconds(250);
inline constexpr absl::Duration kLineInterval = absl::Seconds(10);

// Whether the stream is a terminal whose cursor can be moved.
bool CanRedraw(int stream);

// Used by one thread at a time.
class ProgressLine {
 public:
  // steady: the clock for the intervals; tests replace it.
  explicit ProgressLine(std::function<absl::Time()> steady = SteadyNow);
  ~ProgressLine() { Finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows the text if the interval has passed, else does nothing. May be called as often as the progress changes.
  void Show(std::string_view text);
  // Erases the line. Call it before printing anything else.
  void Finish();

 private:
  const bool in_place_;
  const std::function<absl::Time()> steady_;
  absl::Time next_;
  bool drawn_ = false;
};

}  // namespace hone::cli

#endif  // HONE_CLI_PROGRESS_LINE_H_
