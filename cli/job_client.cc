#include "cli/job_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/identity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/until.h"
#include "compiler/graph/plan.h"
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

}  // namespace

void SearchOptions::AddTo(CLI::App* command) {
  command->add_option("--trials", trials, "most candidates to measure; 0 for no limit")->check(CLI::NonNegativeNumber);
  command->add_option("--time", time, "longest time to tune, waiting not counted: 90s, 10m, 1h30m");
  command->add_option("--until", until, "when to end with what there is: 07:00, or 2027-01-31T07:00:00+01:00");
  command->add_option("--device", devices,
                      "device of the farm to tune on: AGENT or AGENT/DEVICE, several for any of them; or LABEL=VALUE, "
                      "several for all of them");
  command->add_option("--seed", seed, "seed of the search")->capture_default_str();
  command
      ->add_option("--space", space,
                   "which schedules to search: all, template (written for an operator) or sketch (derived for any)")
      ->check(CLI::IsMember({"all", "template", "sketch"}))
      ->capture_default_str();
}

absl::StatusOr<v1::JobSpec> MakeJobSpec(const ModelOptions& model, const SearchOptions& search) {
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions import, model.Import());
  HONE_ASSIGN_OR_RETURN(const target::Target target, model.Target());
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan,
                        graph::BuildPlan(model.model, import, target, Reproducing<graph::Graph>(model.reproducers)));
  v1::JobSpec spec;
  spec.set_request_id(RandomId());
  spec.set_name(std::filesystem::path(model.model).filename().string());
  spec.set_target(target::Print(target));
  spec.set_threads(target.threads);
  spec.set_trials(search.trials);
  spec.set_seed(search.seed);
  spec.set_priority(search.priority);
  if (search.space != "all") (*spec.mutable_options())["space"] = search.space;
  for (const std::string& device : search.devices) {
    const size_t equals = device.find('=');
    if (equals == std::string::npos) {
      spec.add_devices(device);
    } else {
      (*spec.mutable_labels())[device.substr(0, equals)] = device.substr(equals + 1);
    }
  }
  if (!search.until.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Time until, ParseUntil(search.until, absl::Now(), absl::LocalTimeZone()));
    spec.mutable_until()->set_seconds(absl::ToUnixSeconds(until));
  }
  if (!search.time.empty()) {
    absl::Duration time;
    if (!absl::ParseDuration(search.time, &time) || time <= absl::ZeroDuration()) {
      return UsageError(fmt::format("--time {}: write a duration such as 90s, 10m or 1h30m", search.time));
    }
    spec.mutable_time_budget()->set_seconds(absl::ToInt64Seconds(time));
  }
  std::vector<int64_t> counts(plan.workloads.size(), 0);
  for (const graph::PlanCall& call : plan.calls) ++counts[static_cast<size_t>(call.workload)];
  std::string all;
  for (size_t i = 0; i < plan.workloads.size(); ++i) {
    if (counts[i] == 0) continue;
    v1::WorkloadSpec* workload = spec.add_workloads();
    workload->set_text(ir::Print(plan.workloads[i]));
    workload->set_digest(ir::WorkloadDigest(plan.workloads[i]));
    workload->set_count(counts[i]);
    workload->set_op(plan.workloads[i].op);
    workload->set_flops(ir::CountFlops(plan.workloads[i]));
    all += workload->digest();
  }
  spec.set_model_digest(Sha256Hex(all));
  return spec;
}

absl::StatusOr<v1::Job> JobClient::Submit(const v1::JobSpec& spec) {
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

absl::StatusOr<std::vector<v1::Job>> JobClient::List(bool only_open) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::ListJobsRequest request;
  request.set_only_open(only_open);
  v1::ListJobsResponse response;
  if (const grpc::Status status = jobs_->List(&context, request, &response); !status.ok())
    return Annotate(FromGrpc(status), "tracker " + address_);
  return std::vector<v1::Job>(response.jobs().begin(), response.jobs().end());
}

absl::StatusOr<v1::Job> JobClient::Watch(const std::string& job_id,
                                         const std::function<absl::Status(const v1::WatchJobResponse&)>& heard,
                                         const std::function<absl::Status()>& idle) {
  int64_t seen = 0;
  while (true) {
    HONE_RETURN_IF_ERROR(idle());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::WatchJobRequest request;
    request.set_job_id(job_id);
    request.set_after_sequence(seen);
    request.mutable_max_wait()->set_seconds(1);
    v1::WatchJobResponse response;
    const grpc::Status status = jobs_->Watch(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      absl::SleepFor(absl::Milliseconds(300));  // the tracker is being started again
      continue;
    }
    if (!status.ok()) return Annotate(FromGrpc(status), "tracker " + address_);
    for (const v1::JobEvent& event : response.events()) seen = std::max(seen, event.sequence());
    HONE_RETURN_IF_ERROR(heard(response));
    const v1::JobState state = response.job().state();
    if (state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED)
      return response.job();
  }
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Show(const v1::WatchJobResponse& heard) {
  if (absl::Now() < next_) return;
  next_ = absl::Now() + (terminal_ ? absl::Milliseconds(200) : absl::Seconds(10));
  const std::string line = Line(heard.job()) + (heard.trouble().empty() ? "" : ", trouble: " + heard.trouble());
  if (!terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  fmt::print(stderr, "\r{:<{}}", line, width_);
  width_ = line.size();
}

void ProgressLine::Finish() {
  if (terminal_ && width_ > 0) fmt::print(stderr, "\n");
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

std::string JobToText(const v1::Job& job) {
  const v1::JobProgress& p = job.progress();
  std::string text = fmt::format("{}: {}, {} trials in {} ({:.1f}/s), {}\n", job.spec().name(), StateName(job.state()),
                                 p.trials(), Clock(p.seconds()), p.trials_per_second(), Failures(p));
  if (p.has_latency_before_seconds() && p.has_latency_after_seconds()) {
    text += fmt::format("kernels together: {:.3f} ms untuned, {:.3f} ms tuned ({:.2f}x)\n",
                        Milliseconds(p.latency_before_seconds()), Milliseconds(p.latency_after_seconds()),
                        p.latency_before_seconds() / p.latency_after_seconds());
  }
  text += SpentToText(p);
  if (!job.error().empty()) text += job.error() + "\n";
  return text;
}

}  // namespace hone::cli
