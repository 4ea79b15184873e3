// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a command in one line on standard error. On a terminal the line is rewritten in place and
// erased at the end; elsewhere a new line is printed every ten seconds. With HONE_PROGRESS=json it is a JSON document
// on a line of its own, every second, for programs that show it themselves. Work that ends before the first interval
// shows nothing.
//
// The display of running jobs is in job_view.h.
#ifndef HONE_CLI_PROGRESS_LINE_H_
#define HONE_CLI_PROGRESS_LINE_H_

#include <functional>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "base/steady_time.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// kRedrawn: in place, on a terminal whose cursor can be moved. kJson: if the environment says HONE_PROGRESS=json.
enum class ProgressForm { kRedrawn, kLines, kJson };

// The form of the progress on standard error.
ProgressForm ProgressFormOfErrors();

// The interval between two updates.
inline constexpr absl::Duration kRedrawInterval = absl::Milliseconds(250);
inline constexpr absl::Duration kLineInterval = absl::Seconds(10);
inline constexpr absl::Duration kJsonInterval = absl::Seconds(1);

// Prints {"progress": fields} as a line of standard error. Programs that show progress read `text`, and `share`: the
// part of the work that is done, 0 to 1, or null.
void PrintProgress(const nlohmann::ordered_json& fields);

// Used by one thread at a time.
class ProgressLine {
 public:
  // steady: the clock for the intervals; tests replace it.
  explicit ProgressLine(std::function<absl::Time()> steady = SteadyNow);
  ~ProgressLine() { Finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows the text if the interval has passed, else does nothing. May be called as often as the progress changes.
  // share: the part of the work that is done, 0 to 1; only programs see it.
  void Show(std::string_view text, std::optional<double> share = std::nullopt);
  // Erases the line. Call it before printing anything else.
  void Finish();

 private:
  const ProgressForm form_;
  const std::function<absl::Time()> steady_;
  absl::Time next_;
  bool drawn_ = false;
};

}  // namespace hone::cli

#endif  // HONE_CLI_PROGRESS_LINE_H_
