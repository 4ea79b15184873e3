#include "cli/job_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "transport/transport.h"

namespace hone::cli {
namespace {

std::string KindName(v1::FailureKind kind) {
  std::string name = v1::FailureKind_Name(kind).substr(std::string("FAILURE_KIND_").size());
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string Clock(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds));
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string Failures(const v1::JobProgress& progress) {
  int64_t total = 0;
  std::string kinds;
  for (const v1::FailureCount& f : progress.failed()) {
    if (f.count() == 0) continue;
    total += f.count();
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", f.count(), KindName(f.kind()));
  }
  if (total == 0) return "none failed";
  const double share =
      progress.trials() > 0 ? 100.0 * static_cast<double>(total) / static_cast<double>(progress.trials()) : 0;
  return fmt::format("{:.0f}% failed ({})", share, kinds);
}

double Milliseconds(double seconds) { return seconds * 1e3; }

absl::Duration BudgetOf(const v1::JobSpec& spec) {
  return spec.has_time_budget()
             ? absl::Seconds(spec.time_budget().seconds()) + absl::Nanoseconds(spec.time_budget().nanos())
             : absl::InfiniteDuration();
}

std::string Line(const v1::Job& job) {
  const v1::JobProgress& p = job.progress();
  std::string text;
  if (p.has_latency_after_seconds()) {
    text = fmt::format("best {:.3f} ms", Milliseconds(p.latency_after_seconds()));
    if (p.has_latency_before_seconds())
      text += fmt::format(" (untuned {:.3f})", Milliseconds(p.latency_before_seconds()));
    text += ", ";
  }
  text += fmt::format("{} trials, {:.1f}/s", p.trials(), p.trials_per_second());
  if (const absl::Duration budget = BudgetOf(job.spec()); budget != absl::InfiniteDuration()) {
    text += fmt::format(", {} left", Clock(absl::ToDoubleSeconds(budget) - p.seconds()));
  }
  if (job.spec().trials() > 0) text += fmt::format(" of {} trials", job.spec().trials());
  text += ", " + Failures(p);
  if (!job.waiting_for().empty()) return text + ", waiting for " + job.waiting_for();
  return p.activity().empty() ? text : text + ", " + p.activity();
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
}

nlohmann::ordered_json SpentToJson(const v1::TimeSpent& spent) {
  return {{"proposing_seconds", spent.proposing_seconds()},
          {"learning_seconds", spent.learning_seconds()},
          {"building_seconds", spent.building_seconds()},
          {"waiting_seconds", spent.waiting_seconds()},
          {"measuring_seconds", spent.measuring_seconds()},
          {"drawn", spent.drawn()},
          {"illegal", spent.illegal()},
          {"repeated", spent.repeated()}};
}

// Two lines: where the time went, and what became of the candidates that were looked at.
std::string SpentToText(const v1::JobProgress& progress) {
  const v1::TimeSpent& spent = progress.spent();
  if (progress.trials() == 0 || spent.drawn() == 0) return "";
  const auto each = [&](double seconds) {
    return fmt::format("{:.1f} s ({:.1f} ms a trial)", seconds, seconds * 1e3 / static_cast<double>(progress.trials()));
  };
  const auto share = [&](int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(spent.drawn());
  };
  return fmt::format(
      "side by side: proposing {}, learning {}, building {}, waiting for a device {}, measuring {}\n"
      "{} candidates drawn, {:.0f}% illegal, {:.0f}% drawn before\n",
      each(spent.proposing_seconds()), each(spent.learning_seconds()), each(spent.building_seconds()),
      each(spent.waiting_seconds()), each(spent.measuring_seconds()), spent.drawn(), share(spent.illegal()),
      share(spent.repeated()));
}

std::string JobToText(const v1::Job& job) {
  const v1::JobProgress& p = job.progress();
  std::string text =
      fmt::format("{}: {}, {} trials in {} ({:.1f}/s), {}\n", TitleOf(job.spec()), StateName(job.state()), p.trials(),
                  Clock(p.seconds()), p.trials_per_second(), Failures(p));
  if (p.has_latency_before_seconds() && p.has_latency_after_seconds()) {
    text += fmt::format("kernels together: {:.3f} ms untuned, {:.3f} ms tuned ({:.2f}x)\n",
                        Milliseconds(p.latency_before_seconds()), Milliseconds(p.latency_after_seconds()),
                        p.latency_before_seconds() / p.latency_after_seconds());
  }
  text += SpentToText(p);
  if (!job.error().empty()) text += job.error() + "\n";
  return text;
}

}  // namespace

std::string TitleOf(const v1::JobSpec& spec) {
  // Of the target what names a kind of machine; the rest is numbers.
  std::string title = spec.name() + " for";
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(spec.target(), ' '))) {
    if (word.starts_with("-") && !word.starts_with("-mcpu=") && !word.starts_with("-device=")) continue;
    title += fmt::format(" {}", word);
  }
  std::vector<std::string> asked(spec.devices().begin(), spec.devices().end());
  for (const auto& [name, value] : std::map(spec.labels().begin(), spec.labels().end())) {
    asked.push_back(fmt::format("{}={}", name, value));
  }
  return asked.empty() ? title : fmt::format("{} on {}", title, fmt::join(asked, ", "));
}

absl::Status FailureAmong(const std::vector<v1::Job>& jobs) {
  for (const v1::Job& job : jobs) {
    if (job.state() == v1::JOB_STATE_FAILED) {
      return absl::InternalError(fmt::format("tuning {} failed: {}", TitleOf(job.spec()), job.error()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> JobClient::SubmitOne(const v1::JobSpec& spec) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  v1::Job job;
  if (const grpc::Status status = jobs_->Submit(&context, request, &job); !status.ok())
    return Annotate(FromGrpc(status), "tracker " + address_);
  return job;
}

absl::StatusOr<std::vector<v1::Job>> JobClient::Submit(const std::vector<v1::JobSpec>& specs) {
  std::vector<v1::Job> jobs;
  for (const v1::JobSpec& spec : specs) {
    absl::StatusOr<v1::Job> job = SubmitOne(spec);
    if (job.ok()) {
      jobs.push_back(*std::move(job));
      continue;
    }
    // Where no answer came, this one may be queued too, or there is no way to cancel the others now.
    const bool unknown = absl::IsUnavailable(job.status()) || absl::IsDeadlineExceeded(job.status());
    bool cancelled = true;
    for (const v1::Job& earlier : jobs) cancelled &= Cancel(earlier.id()).ok();
    if (spec.group().empty() || (cancelled && !unknown)) return job.status();
    return Annotate(job.status(), fmt::format("some jobs may be queued (hone cancel {} ends them)", spec.group()));
  }
  return jobs;
}

absl::StatusOr<v1::Job> JobClient::Get(const std::string& job_id) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  v1::Job job;
  if (const grpc::Status status = jobs_->Get(&context, request, &job); !status.ok())
    return Annotate(FromGrpc(status), "tracker " + address_);
  return job;
}

absl::StatusOr<std::vector<v1::Job>> JobClient::Meant(const std::string& id) {
  v1::ListJobsRequest request;
  request.set_group(id);
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, List(request));
  if (!jobs.empty()) return jobs;
  HONE_ASSIGN_OR_RETURN(v1::Job job, Get(id));
  return std::vector<v1::Job>{std::move(job)};
}

absl::StatusOr<v1::Job> JobClient::Cancel(const std::string& job_id) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::CancelJobRequest request;
  request.set_job_id(job_id);
  v1::Job job;
  if (const grpc::Status status = jobs_->Cancel(&context, request, &job); !status.ok())
    return Annotate(FromGrpc(status), "tracker " + address_);
  return job;
}

absl::StatusOr<v1::ListDevicesResponse> JobClient::Devices() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::ListDevicesResponse response;
  const grpc::Status status = admin_->ListDevices(&context, v1::ListDevicesRequest(), &response);
  if (!status.ok()) return Annotate(FromGrpc(status), "tracker " + address_);
  return response;
}

absl::StatusOr<std::vector<v1::Job>> JobClient::List(const v1::ListJobsRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::ListJobsResponse response;
  if (const grpc::Status status = jobs_->List(&context, request, &response); !status.ok())
    return Annotate(FromGrpc(status), "tracker " + address_);
  return std::vector<v1::Job>(response.jobs().begin(), response.jobs().end());
}

absl::StatusOr<std::vector<v1::Job>> JobClient::Watch(
    std::vector<v1::Job> jobs, const std::function<absl::Status(const v1::WatchJobResponse&)>& heard,
    const std::function<absl::Status()>& idle) {
  std::vector<int64_t> seen(jobs.size(), 0);
  std::vector<bool> ended(jobs.size(), false);
  const absl::Duration wait = absl::Seconds(1) / static_cast<int64_t>(std::max<size_t>(1, jobs.size()));
  while (std::find(ended.begin(), ended.end(), false) != ended.end()) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (ended[i]) continue;
      HONE_RETURN_IF_ERROR(idle());
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      v1::WatchJobRequest request;
      request.set_job_id(jobs[i].id());
      request.set_after_sequence(seen[i]);
      request.mutable_max_wait()->set_seconds(absl::ToInt64Seconds(wait));
      request.mutable_max_wait()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(wait) % 1'000'000'000));
      v1::WatchJobResponse response;
      const grpc::Status status = jobs_->Watch(&context, request, &response);
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
        absl::SleepFor(absl::Milliseconds(300));  // the tracker is being started again
        continue;
      }
      if (!status.ok()) return Annotate(FromGrpc(status), "tracker " + address_);
      for (const v1::JobEvent& event : response.events()) seen[i] = std::max(seen[i], event.sequence());
      HONE_RETURN_IF_ERROR(heard(response));
      jobs[i] = response.job();
      ended[i] = HasEnded(jobs[i].state());
    }
  }
  return jobs;
}

ProgressLine::ProgressLine(size_t jobs) : in_place_(jobs == 1 && isatty(STDERR_FILENO) == 1), several_(jobs > 1) {}

void ProgressLine::Show(const v1::WatchJobResponse& heard) {
  absl::Time& next = next_[heard.job().id()];
  const bool last = several_ && HasEnded(heard.job().state());
  if (absl::Now() < next && !last) return;
  next = absl::Now() + (in_place_ ? absl::Milliseconds(200) : absl::Seconds(10));
  const std::string title =
      several_ ? fmt::format("{}: {}: ", TitleOf(heard.job().spec()), StateName(heard.job().state())) : "";
  const std::string line = title + Line(heard.job()) + (heard.trouble().empty() ? "" : ", trouble: " + heard.trouble());
  if (!in_place_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  fmt::print(stderr, "\r{:<{}}", line, width_);
  width_ = line.size();
}

void ProgressLine::Finish() {
  if (in_place_ && width_ > 0) fmt::print(stderr, "\n");
}

std::string StateName(v1::JobState state) {
  std::string name = v1::JobState_Name(state).substr(std::string("JOB_STATE_").size());
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

nlohmann::ordered_json JobToJson(const v1::Job& job) {
  const v1::JobProgress& p = job.progress();
  const auto optional_ms = [](bool has, double seconds) {
    return has ? nlohmann::ordered_json(Milliseconds(seconds)) : nullptr;
  };
  nlohmann::ordered_json failed = nlohmann::ordered_json::object();
  for (const v1::FailureCount& f : p.failed()) failed[KindName(f.kind())] = f.count();
  nlohmann::ordered_json workloads = nlohmann::ordered_json::array();
  for (int i = 0; i < job.spec().workloads_size(); ++i) {
    const v1::WorkloadSpec& spec = job.spec().workloads(i);
    const v1::WorkloadProgress progress = i < p.workloads_size() ? p.workloads(i) : v1::WorkloadProgress();
    const double best = progress.best_seconds();
    workloads.push_back({{"digest", spec.digest()},
                         {"operator", spec.op()},
                         {"count", spec.count()},
                         {"trials", progress.trials()},
                         {"default_ms", optional_ms(progress.has_default_seconds(), progress.default_seconds())},
                         {"best_ms", optional_ms(progress.has_best_seconds(), best)},
                         {"gflops", progress.has_best_seconds() && best > 0 ? spec.flops() / best * 1e-9 : 0.0},
                         {"roofline_share", progress.roofline_share()},
                         {"schedule", progress.best_schedule()}});
  }
  return {
      {"model", job.spec().name()},
      {"target", job.spec().target()},
      {"job", job.id()},
      {"group", job.spec().group()},
      {"devices", job.spec().devices()},
      {"state", StateName(job.state())},
      {"submitted_by", job.spec().submitted_by()},
      {"priority", job.spec().priority()},
      {"until", job.spec().has_until() ? nlohmann::ordered_json(absl::FormatTime(
                                             absl::FromUnixSeconds(job.spec().until().seconds()), absl::UTCTimeZone()))
                                       : nullptr},
      {"waiting_for", job.waiting_for()},
      {"trials", p.trials()},
      {"failed", failed},
      {"seconds", p.seconds()},
      {"trials_per_second", p.trials_per_second()},
      {"spent", SpentToJson(p.spent())},
      {"latency_ms_before", optional_ms(p.has_latency_before_seconds(), p.latency_before_seconds())},
      {"latency_ms_after", optional_ms(p.has_latency_after_seconds(), p.latency_after_seconds())},
      {"workloads", workloads}};
}

nlohmann::ordered_json JobsToJson(const std::vector<v1::Job>& jobs) {
  if (jobs.size() == 1) return JobToJson(jobs.front());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const v1::Job& job : jobs) list.push_back(JobToJson(job));
  return {{"group", jobs.empty() ? "" : jobs.front().spec().group()}, {"jobs", list}};
}

std::string JobsToText(const std::vector<v1::Job>& jobs) {
  std::string text;
  for (const v1::Job& job : jobs) text += JobToText(job);
  return text;
}

}  // namespace hone::cli
