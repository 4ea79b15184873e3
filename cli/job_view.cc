// SPDX-License-Identifier: Apache-2.0
#include "cli/job_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "base/one_line.h"
#include "cli/job_text.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/quantity_text.h"
#include "proto/convert.h"
#include "tracker/job_json.h"

namespace hone::cli {
namespace {

std::string Times(double before, double after) { return after > 0 ? fmt::format("{:.2f}x", before / after) : "-"; }

// The gain. Until the whole model was measured, it is a sum of kernels, each as it looked in its own visits.
std::string Best(const v1::Job& job) {
  const v1::JobProgress& progress = job.progress();
  if (progress.confirmation().ratio() > 0) return MeasuredGain(progress.confirmation()) + "; ";
  if (!progress.has_latency_after_seconds()) return "";
  const std::string what = HasEnded(job.state()) ? "kernels together" : "provisional";
  const double after = progress.latency_after_seconds();
  if (!progress.has_latency_before_seconds()) return fmt::format("{}: best {}, ", what, Latency(after));
  const double before = progress.latency_before_seconds();
  return fmt::format("{}: best {}, untuned {}, {}; ", what, Latency(after), Latency(before), Times(before, after));
}

std::string Trials(const v1::Job& job) {
  const v1::JobProgress& progress = job.progress();
  const std::string most = job.spec().trials() > 0 ? fmt::format(" of {}", job.spec().trials()) : "";
  return fmt::format("{}{} trials, {:.1f}/s", progress.trials(), most, progress.trials_per_second());
}

std::string Left(const v1::Job& job, absl::Time now) {
  const std::optional<absl::Duration> left = tracker::TimeLeft(job, now);
  return left.has_value() ? fmt::format(", {} left", Clock(absl::ToDoubleSeconds(*left))) : "";
}

std::string Doing(const v1::WatchJobResponse& heard) {
  if (!heard.trouble().empty()) return "the tracker cannot store anything: " + heard.trouble();
  const v1::Job& job = heard.job();
  return job.waiting_for().empty() ? job.progress().activity() : "waiting for " + job.waiting_for();
}

// A workload of a job with its progress.
struct Part {
  const v1::WorkloadSpec* spec = nullptr;
  v1::WorkloadProgress progress;
  double share = 0;  // fraction of the model's measured time, 0 to 1; 0 = not measured yet
};

std::vector<Part> PartsOf(const v1::Job& job) {
  std::vector<Part> parts;
  double all = 0;
  for (int i = 0; i < job.spec().workloads_size(); ++i) {
    Part part{.spec = &job.spec().workloads(i)};
    if (i < job.progress().workloads_size()) part.progress = job.progress().workloads(i);
    part.share = static_cast<double>(part.spec->count()) * part.progress.best_seconds();
    all += part.share;
    parts.push_back(std::move(part));
  }
  for (Part& part : parts) part.share = all > 0 ? part.share / all : 0;
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.share > b.share; });
  return parts;
}

std::string RowOf(const Part& part) {
  const v1::WorkloadProgress& p = part.progress;
  const auto latency = [](bool has, double seconds) { return has ? Latency(seconds) : "-"; };
  return fmt::format(
      "  {:>5} {:>4} {:>7} {:>11} {:>11} {:>7} {:>6}  {}",
      p.has_best_seconds() ? fmt::format("{:.1f}%", part.share * 100) : "-", fmt::format("x{}", part.spec->count()),
      p.trials(), latency(p.has_default_seconds(), p.default_seconds()),
      latency(p.has_best_seconds(), p.best_seconds()),
      p.has_default_seconds() ? Times(p.default_seconds(), p.best_seconds()) : "-",
      p.roofline_share() > 0 ? fmt::format("{:.0f}%", p.roofline_share() * 100) : "-", TitleOf(*part.spec));
}

// A table of the job's workloads, in at most `rows` lines. Empty if there is no room for the heading and two rows.
std::vector<std::string> Table(const v1::Job& job, size_t rows) {
  const std::vector<Part> parts = PartsOf(job);
  if (rows < 3 || parts.empty()) return {};
  std::vector<std::string> lines = {fmt::format("  {:>5} {:>4} {:>7} {:>11} {:>11} {:>7} {:>6}  {}", "share", "runs",
                                                "trials", "untuned", "best", "faster", "of max", "workload")};
  const bool all = parts.size() <= rows - 1;
  const size_t shown = all ? parts.size() : rows - 2;
  for (size_t i = 0; i < shown; ++i) lines.push_back(RowOf(parts[i]));
  if (!all) lines.push_back(fmt::format("  and {} more", parts.size() - shown));
  return lines;
}

std::vector<std::string> Head(const v1::WatchJobResponse& heard, absl::Time now) {
  const v1::Job& job = heard.job();
  const v1::JobProgress& progress = job.progress();
  if (job.spec().has_run()) {
    const std::string doing = Doing(heard);
    return {fmt::format("{}  {}: {}{}", job.id(), TitleOf(job.spec()), StateName(job.state()),
                        HasEnded(job.state()) || doing.empty() ? "" : ", " + doing)};
  }
  std::vector<std::string> lines = {fmt::format("{}  {}: {}, {}{}", job.id(), TitleOf(job.spec()),
                                                StateName(job.state()), Clock(progress.seconds()), Left(job, now)),
                                    fmt::format("  {}{}, {}", Best(job), Trials(job), Failures(progress))};
  if (const std::string doing = Doing(heard); !HasEnded(job.state()) && !doing.empty()) lines.push_back("  " + doing);
  return lines;
}

// The longest prefix of the line that fits in `columns`. Each character beyond ASCII is counted as two columns wide.
std::string Cut(const std::string& line, size_t columns) {
  size_t taken = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const bool continues = (byte & 0xc0) == 0x80;
    taken += byte < 0x80 ? 1 : continues ? 0 : 2;
    if (taken > columns && !continues) return line.substr(0, i);
  }
  return line;
}

Screen ScreenOf(int terminal) {
  winsize size = {};
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

}  // namespace

std::string Line(const v1::WatchJobResponse& heard, absl::Time now) {
  const v1::Job& job = heard.job();
  const std::string doing = Doing(heard);
  if (job.spec().has_run()) return doing.empty() ? StateName(job.state()) : doing;
  return fmt::format("{}{}{}, {}{}", Best(job), Trials(job), Left(job, now), Failures(job.progress()),
                     doing.empty() ? "" : ", " + doing);
}

nlohmann::ordered_json ProgressOf(const v1::WatchJobResponse& heard, absl::Time now) {
  using Json = nlohmann::ordered_json;
  const v1::Job& job = heard.job();
  const v1::JobProgress& progress = job.progress();
  const std::optional<absl::Duration> left = tracker::TimeLeft(job, now);
  const double seconds_left = left.has_value() ? absl::ToDoubleSeconds(*left) : 0;
  const double all = progress.seconds() + seconds_left;
  Json share = nullptr;
  if (HasEnded(job.state())) share = 1.0;
  if (left.has_value()) share = all > 0 ? progress.seconds() / all : 0.0;
  const auto latency_ms = [](bool has, double seconds) { return has ? Json(seconds * 1e3) : nullptr; };
  return {{"text", Line(heard, now)},
          {"share", share},
          {"job", job.id()},
          {"title", TitleOf(job.spec())},
          {"state", StateName(job.state())},
          {"trials", progress.trials()},
          {"seconds", progress.seconds()},
          {"seconds_left", left.has_value() ? Json(seconds_left) : nullptr},
          {"latency_ms_before", latency_ms(progress.has_latency_before_seconds(), progress.latency_before_seconds())},
          {"latency_ms_after", latency_ms(progress.has_latency_after_seconds(), progress.latency_after_seconds())}};
}

std::vector<std::string> Picture(const std::vector<v1::WatchJobResponse>& jobs, Screen screen, absl::Time now) {
  std::vector<std::vector<std::string>> heads;
  for (const v1::WatchJobResponse& heard : jobs) heads.push_back(Head(heard, now));
  const size_t room = std::max<size_t>(screen.rows, 2) - 1;  // the cursor takes the last row
  size_t taken = std::accumulate(heads.begin(), heads.end(), size_t{0},
                                 [](size_t sum, const std::vector<std::string>& head) { return sum + head.size(); });
  std::vector<std::string> lines;
  for (size_t i = 0; i < jobs.size(); ++i) {
    lines.insert(lines.end(), heads[i].begin(), heads[i].end());
    if (taken >= room || HasEnded(jobs[i].job().state())) continue;
    // The remaining rows are divided equally among this job and those after it.
    const std::vector<std::string> table = Table(jobs[i].job(), (room - taken) / (jobs.size() - i));
    lines.insert(lines.end(), table.begin(), table.end());
    taken += table.size();
  }
  if (lines.size() > room) {
    lines.resize(room - 1);
    lines.push_back("...");
  }
  for (std::string& line : lines) line = Cut(OneLine(Printable(line)), screen.columns);
  return lines;
}

JobView::JobView(size_t jobs, std::function<absl::Time()> steady)
    : form_(ProgressFormOfErrors()), several_(jobs > 1), steady_(std::move(steady)) {}

void JobView::ShowLine(const v1::WatchJobResponse& heard, absl::Time now) {
  const bool ended = HasEnded(heard.job().state()), json = form_ == ProgressForm::kJson;
  absl::Time& next = next_[heard.job().id()];
  if (now < next && !((several_ || json) && ended)) return;
  next = now + (json ? kJsonInterval : kLineInterval);
  if (json) return PrintProgress(ProgressOf(heard, absl::Now()));
  const std::string title =
      several_ ? fmt::format("{}: {}: ", TitleOf(heard.job().spec()), StateName(heard.job().state())) : "";
  PrintMessage(OneLine(title + Line(heard, absl::Now())) + "\n");
}

void JobView::Show(const v1::WatchJobResponse& heard) {
  const absl::Time now = steady_();
  const std::string& id = heard.job().id();
  const bool ended = HasEnded(heard.job().state());
  if (form_ != ProgressForm::kRedrawn) return ShowLine(heard, now);
  const auto known = std::find_if(newest_.begin(), newest_.end(),
                                  [&id](const v1::WatchJobResponse& other) { return other.job().id() == id; });
  if (known == newest_.end()) {
    newest_.push_back(heard);
  } else {
    *known = heard;
  }
  if (now >= next_picture_ || ended) Redraw();
}

void JobView::Redraw() {
  next_picture_ = steady_() + kRedrawInterval;
  // Moves the cursor to the first line of the last picture and erases everything below. The new picture follows in the
  // same write, so that the terminal does not flicker.
  std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A\r\x1b[J", drawn_) : "\r\x1b[J";
  const std::vector<std::string> lines = Picture(newest_, ScreenOf(STDERR_FILENO), absl::Now());
  for (const std::string& line : lines) text += line + "\n";
  drawn_ = lines.size();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void JobView::Finish() {
  if (form_ == ProgressForm::kRedrawn && !newest_.empty()) Redraw();
  newest_.clear();
  drawn_ = 0;
}

void JobView::PrintBelow(std::string_view message) {
  Finish();
  PrintMessage(message);
}

void JobView::PrintTrackerAway(const absl::Status& status) {
  PrintBelow(fmt::format("the tracker does not answer, asking again: {}\n", std::string(status.message())));
}

}  // namespace hone::cli
