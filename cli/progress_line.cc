// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/one_line.h"
#include "cli/output.h"

namespace hone::cli {

bool CanRedraw(int stream) {
  const char* kind = std::getenv("TERM");
  return isatty(stream) == 1 && kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
}

ProgressLine::ProgressLine(std::function<absl::Time()> steady)
    : in_place_(CanRedraw(STDERR_FILENO)),
      steady_(std::move(steady)),
      next_(steady_() + (in_place_ ? kRedrawInterval : kLineInterval)) {}

void ProgressLine::Show(std::string_view text) {
  const absl::Time now = steady_();
  if (now < next_) return;
  next_ = now + (in_place_ ? kRedrawInterval : kLineInterval);
  if (!in_place_) return PrintMessage(OneLine(text) + "\n");
  const std::string line = fmt::format("\r\x1b[K{}", OneLine(Printable(text)));
  std::fwrite(line.data(), 1, line.size(), stderr);
  drawn_ = true;
}

void ProgressLine::Finish() {
  if (std::exchange(drawn_, false)) std::fputs("\r\x1b[K", stderr);
}

}  // namespace hone::cli
