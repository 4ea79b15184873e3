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

namespace {

absl::Duration IntervalOf(ProgressForm form) {
  switch (form) {
    case ProgressForm::kRedrawn:
      return kRedrawInterval;
    case ProgressForm::kLines:
      return kLineInterval;
    case ProgressForm::kJson:
      return kJsonInterval;
  }
  return kLineInterval;
}

}  // namespace

ProgressForm ProgressFormOfErrors() {
  const char* wanted = std::getenv("HONE_PROGRESS");
  if (wanted != nullptr && std::string_view(wanted) == "json") return ProgressForm::kJson;
  const char* kind = std::getenv("TERM");
  const bool movable = kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
  return isatty(STDERR_FILENO) == 1 && movable ? ProgressForm::kRedrawn : ProgressForm::kLines;
}

void PrintProgress(const nlohmann::ordered_json& fields) {
  const nlohmann::ordered_json document = {{"progress", fields}};
  PrintMessage(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

ProgressLine::ProgressLine(std::function<absl::Time()> steady)
    : form_(ProgressFormOfErrors()), steady_(std::move(steady)), next_(steady_() + IntervalOf(form_)) {}

void ProgressLine::Show(std::string_view text, std::optional<double> share) {
  const absl::Time now = steady_();
  if (now < next_) return;
  next_ = now + IntervalOf(form_);
  if (form_ == ProgressForm::kJson) {
    return PrintProgress(
        {{"text", std::string(text)}, {"share", share.has_value() ? nlohmann::ordered_json(*share) : nullptr}});
  }
  if (form_ == ProgressForm::kLines) return PrintMessage(OneLine(text) + "\n");
  const std::string line = fmt::format("\r\x1b[K{}", OneLine(Printable(text)));
  std::fwrite(line.data(), 1, line.size(), stderr);
  drawn_ = true;
}

void ProgressLine::Finish() {
  if (std::exchange(drawn_, false)) std::fputs("\r\x1b[K", stderr);
}

}  // namespace hone::cli
