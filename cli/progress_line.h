// SPDX-License-Identifier: Apache-2.0
// How far a command has come, in one line on standard error: on a terminal it is written again in place and taken away
// at the end, elsewhere it is a line every ten seconds. What takes no time is not told of.
//
// Jobs, of which there is more to see, are job_view.h's.
#ifndef HONE_CLI_PROGRESS_LINE_H_
#define HONE_CLI_PROGRESS_LINE_H_

#include <functional>
#include <string_view>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace hone::cli {

// How long what was shown stands before it is shown again: on a terminal that can be drawn on, and elsewhere.
inline constexpr absl::Duration kBetweenPictures = absl::Milliseconds(250);
inline constexpr absl::Duration kBetweenLines = absl::Seconds(10);

// Whether the stream is a terminal whose cursor can be moved.
bool CanRedraw(int stream);

// Used by one thread at a time.
class ProgressLine {
 public:
  // steady: a clock that nobody sets.
  explicit ProgressLine(std::function<absl::Time()> steady = SteadyNow);
  ~ProgressLine() { Finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // To be called as often as there is something new.
  void Show(std::string_view text);
  // Takes the line away: before anything else is said.
  void Finish();

 private:
  const bool in_place_;
  const std::function<absl::Time()> steady_;
  absl::Time next_;
  bool drawn_ = false;
};

}  // namespace hone::cli

#endif  // HONE_CLI_PROGRESS_LINE_H_
