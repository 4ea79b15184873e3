// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/run_limits.h"
#include "base/status.h"
#include "proto/convert.h"
#include "tracker/queue/matches.h"
#include "tracker/queue/memory.h"
#include "tracker/queue/notice_url.h"
#include "tracker/queue/run_task.h"
#include "tracker/queue/submitter.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

constexpr size_t kEventsKeptMax = 256;
constexpr absl::Duration kTunerCallsWithin = absl::Seconds(60);  // a free tuner asks for a job every 20 seconds
constexpr size_t kEventsBytesMax = size_t{8} << 20;  // per job; one report of a large model has some 100 KiB
constexpr size_t kEventsKeptAfterEnd = 4;            // per job
// A report holds a schedule for each workload, which is about as long as the workload itself.
constexpr size_t kProgressBytesMax = kJobSpecificationBytesMax;
constexpr int kWorkloadsMax = 4000;  // the largest models have some hundreds
constexpr int kHintsMax = 16;        // per workload
constexpr int kNodesMax = 16;        // per workload
constexpr size_t kNodeBytesMax = 256;
// The texts of a job (names, labels, options, devices) go into every list, event and notice. A list of devices may name
// each board of a lab.
constexpr size_t kJobTextBytesMax = size_t{4} << 10;    // of one text; a target may name every feature of a CPU
constexpr size_t kJobTextsMax = 1000;                   // number of texts
constexpr size_t kJobTextsBytesMax = size_t{32} << 10;  // of all texts together

absl::Status TooManyInJob(std::string_view what, size_t has, size_t limit) {
  return absl::InvalidArgumentError(fmt::format("the job has {} {}; the limit is {}", has, what, limit));
}

absl::Status ValidateTexts(const v1::JobSpec& spec) {
  std::vector<const std::string*> texts = {&spec.request_id(),  &spec.name(),  &spec.model_digest(), &spec.target(),
                                           &spec.device_kind(), &spec.group(), &spec.notify_url()};
  for (const std::string& device : spec.devices()) texts.push_back(&device);
  for (const auto* map : {&spec.labels(), &spec.options()}) {
    for (const auto& entry : *map) texts.insert(texts.end(), {&entry.first, &entry.second});
  }
  if (texts.size() > kJobTextsMax)
    return TooManyInJob("names, labels, options and devices", texts.size(), kJobTextsMax);
  size_t bytes = 0;
  for (const std::string* text : texts) {
    bytes += text->size();
    if (text->size() > kJobTextBytesMax) {
      return TooManyInJob(fmt::format("bytes in the name, label or option '{}...'", TruncateUtf8(*text, 40)),
                          text->size(), kJobTextBytesMax);
    }
  }
  if (bytes > kJobTextsBytesMax)
    return TooManyInJob("bytes of names, labels, options and devices", bytes, kJobTextsBytesMax);
  return absl::OkStatus();
}

absl::Status ValidateWorkload(const v1::WorkloadSpec& workload) {
  for (const std::string* text : {&workload.digest(), &workload.op(), &workload.title()}) {
    if (text->size() > kJobTextBytesMax)
      return TooManyInJob("bytes in the name of a workload", text->size(), kJobTextBytesMax);
  }
  if (workload.digest().empty() || workload.text().empty() || workload.count() < 1) {
    return absl::InvalidArgumentError(
        fmt::format("workload '{}' of the job lacks its digest, its text or a count of at least 1", workload.digest()));
  }
  if (Sha256Hex(workload.text()) != workload.digest()) {
    return absl::InvalidArgumentError(
        fmt::format("the digest of workload '{}' of the job does not match its text", workload.digest()));
  }
  const auto is_too_long = [](const std::string& node) { return node.size() > kNodeBytesMax; };
  if (workload.nodes_size() > kNodesMax || std::ranges::any_of(workload.nodes(), is_too_long)) {
    return absl::InvalidArgumentError(
        fmt::format("workload '{}' of the job has more than {} names of nodes, or one of more than {} bytes",
                    workload.digest(), kNodesMax, kNodeBytesMax));
  }
  if (workload.hints_size() > kHintsMax) {
    return absl::InvalidArgumentError(fmt::format("workload '{}' of the job has {} hints; the limit is {}",
                                                  workload.digest(), workload.hints_size(), kHintsMax));
  }
  return absl::OkStatus();
}

absl::Status ValidateJob(const v1::JobSpec& spec) {
  if (const size_t bytes = spec.ByteSizeLong(); bytes > kJobSpecificationBytesMax) {
    return absl::InvalidArgumentError(fmt::format("the job has {} bytes; the limit is {}; tune the model in parts",
                                                  bytes, kJobSpecificationBytesMax));
  }
  if (spec.workloads_size() > kWorkloadsMax) {
    return absl::InvalidArgumentError(fmt::format("the job has {} workloads; the limit is {}; tune the model in parts",
                                                  spec.workloads_size(), kWorkloadsMax));
  }
  if (spec.request_id().empty()) return absl::InvalidArgumentError("job has no request_id; choose a random one");
  HONE_RETURN_IF_ERROR(ValidateTexts(spec));
  if (spec.has_run()) {
    if (spec.workloads().empty() && !spec.has_model()) return CheckRunTask(spec.run());
    return absl::InvalidArgumentError("job has both a run and workloads or a model; submit two jobs");
  }
  if (spec.target().empty()) return absl::InvalidArgumentError("job has no target");
  if (spec.workloads().empty()) return absl::InvalidArgumentError("job has no workload; nothing is to be tuned");
  if (spec.threads() < 1) return absl::InvalidArgumentError("job asks for less than one thread");
  if (spec.trials() < 0) return absl::InvalidArgumentError("job has a negative number of trials");
  if (spec.trials() == 0 && !spec.has_time_budget() && !spec.has_until()) {
    return absl::InvalidArgumentError("job has no budget; give trials, time_budget or until");
  }
  if (spec.has_model()) HONE_RETURN_IF_ERROR(CheckModel(spec.model()));
  for (const v1::WorkloadSpec& workload : spec.workloads()) HONE_RETURN_IF_ERROR(ValidateWorkload(workload));
  return absl::OkStatus();
}

// Fills in the schedules that a report leaves out because they are the same as in the report before it.
v1::JobProgress InFull(v1::JobProgress report, const v1::JobProgress& before) {
  for (int i = 0; i < report.workloads_size(); ++i) {
    v1::WorkloadProgress& workload = *report.mutable_workloads(i);
    if (!workload.same_schedule()) continue;
    workload.clear_same_schedule();
    if (i < before.workloads_size()) workload.set_best_schedule(before.workloads(i).best_schedule());
  }
  return report;
}

// The name in a tuner id of the form NAME/ANYTHING. Several tuners may share a name.
std::string NameOfTuner(const std::string& id) { return id.substr(0, id.find('/')); }

absl::Status NoSuchJob(const std::string& job_id) {
  return absl::NotFoundError(fmt::format("there is no job '{}'; list the jobs to see their ids", job_id));
}

}  // namespace

bool JobQueue::Ended(const v1::Job& job) {
  return job.state() != v1::JOB_STATE_QUEUED && job.state() != v1::JOB_STATE_RUNNING;
}

v1::Job JobQueue::SummaryOf(const v1::Job& job) {
  v1::Job line;
  line.set_id(job.id());
  line.set_state(job.state());
  line.set_error(job.error());
  if (job.has_created()) *line.mutable_created() = job.created();
  if (job.has_started()) *line.mutable_started() = job.started();
  if (job.has_ended()) *line.mutable_ended() = job.ended();
  if (job.has_notice()) *line.mutable_notice() = job.notice();

  const v1::JobSpec& spec = job.spec();
  v1::JobSpec& asked = *line.mutable_spec();
  asked.set_name(spec.name());
  asked.set_target(spec.target());
  asked.set_group(spec.group());
  asked.set_notify_url(spec.notify_url());
  asked.set_submitted_by(spec.submitted_by());
  asked.set_priority(spec.priority());
  asked.set_trials(spec.trials());
  *asked.mutable_devices() = spec.devices();
  if (spec.has_run()) *asked.mutable_run() = spec.run();
  if (spec.has_time_budget()) *asked.mutable_time_budget() = spec.time_budget();
  if (spec.has_until()) *asked.mutable_until() = spec.until();

  const v1::JobProgress& progress = job.progress();
  v1::JobProgress& reached = *line.mutable_progress();
  reached.set_activity(progress.activity());
  reached.set_run_device(progress.run_device());
  reached.set_trials(progress.trials());
  reached.set_seconds(progress.seconds());
  reached.set_trials_per_second(progress.trials_per_second());
  *reached.mutable_failed() = progress.failed();
  if (progress.has_latency_before_seconds()) reached.set_latency_before_seconds(progress.latency_before_seconds());
  if (progress.has_latency_after_seconds()) reached.set_latency_after_seconds(progress.latency_after_seconds());
  reached.set_search_ended(progress.search_ended());
  if (progress.has_confirmation()) {
    *reached.mutable_confirmation() = progress.confirmation();
    reached.mutable_confirmation()->clear_run();
  }
  return line;
}

void JobQueue::Restore(v1::Job job) {
  const std::string id = job.id();
  Entry& entry = jobs_[id];
  if (job.state() == v1::JOB_STATE_RUNNING) job.set_attempts(std::max(0, job.attempts() - 1));
  if (!Ended(job)) {
    job.set_state(v1::JOB_STATE_QUEUED);
    files_.Add(id, FilesOf(job.spec()));
  }
  entry.job = std::move(job);
  entry.number = next_number_++;
  entry.spec_bytes = MemoryOf(entry.job.spec());
  entry.progress_bytes = MemoryOf(entry.job.progress());
  entry.last_sequence = FirstSequence();
  entry.ended = FromProto(entry.job.ended());  // at the start the queue's clock equals the wall clock
  // A job that was stored damaged has no request id.
  if (const std::string& request = entry.job.spec().request_id(); !request.empty()) by_request_id_[request] = id;
}

absl::StatusOr<const v1::Job*> JobQueue::Submit(const v1::JobSpec& spec, absl::Time now) {
  HONE_RETURN_IF_ERROR(ValidateJob(spec));
  if (auto known = by_request_id_.find(spec.request_id()); known != by_request_id_.end()) {
    return &jobs_.at(known->second).job;
  }
  if (spec.has_until() && FromProto(spec.until()) <= now + wall_offset_) {
    return absl::InvalidArgumentError(fmt::format("the job must end by {}, which has passed; give a later time",
                                                  absl::FormatTime(FromProto(spec.until()), absl::UTCTimeZone())));
  }
  if (!spec.notify_url().empty()) HONE_RETURN_IF_ERROR(CheckNoticeUrl(spec.notify_url(), options_.notify_allowed));
  HONE_RETURN_IF_ERROR(CheckOpen(spec));
  const int64_t number = next_number_++;
  std::string id;  // short, because users type it
  do {
    id = "j" + draw_id_().substr(0, 8);
  } while (jobs_.contains(id));
  Entry& entry = jobs_[id];
  entry.number = number;
  entry.last_sequence = FirstSequence();
  entry.job.set_id(id);
  *entry.job.mutable_spec() = spec;
  entry.spec_bytes = MemoryOf(entry.job.spec());
  *entry.job.mutable_created() = Stamp(now);
  by_request_id_[spec.request_id()] = id;
  SetState(entry, v1::JOB_STATE_QUEUED, now);
  return &entry.job;
}

absl::Status JobQueue::CheckOpen(const v1::JobSpec& spec) const {
  constexpr std::string_view kWhatToDo = "wait until some end, or cancel some (hone jobs, hone cancel)";
  int open = 0;
  auto bytes = static_cast<int64_t>(MemoryOf(spec));
  for (const auto& [id, entry] : jobs_) {
    if (Ended(entry.job) || SubmitterOf(entry.job.spec()) != SubmitterOf(spec)) continue;
    ++open;
    bytes += static_cast<int64_t>(entry.spec_bytes);
  }
  if (open >= options_.open_jobs_max) {
    return absl::ResourceExhaustedError(
        fmt::format("'{}' has {} open jobs, the most a user may have; {}", spec.submitted_by(), open, kWhatToDo));
  }
  if (bytes <= options_.open_bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("with this job, the open jobs of '{}' would take {} KiB of the tracker's memory; the limit is {}; {}",
                  spec.submitted_by(), bytes >> 10, options_.open_bytes_max >> 10, kWhatToDo));
}

std::vector<const v1::Job*> JobQueue::JobsToNotify() const {
  std::vector<const v1::Job*> jobs;
  for (const auto& [id, entry] : jobs_) {
    const v1::Job& job = entry.job;
    if (!job.spec().notify_url().empty() && Ended(job) && !job.notice().closed()) jobs.push_back(&job);
  }
  return jobs;
}

void JobQueue::RecordNotice(const std::string& job_id, const v1::JobNotice& notice) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return;  // forgotten meanwhile
  *found->second.job.mutable_notice() = notice;
  changed_.insert(job_id);
}

std::map<std::string, int> JobQueue::RunningByUser() const {
  std::map<std::string, int> running;
  for (const auto& [id, entry] : jobs_) {
    if (Tuned(entry)) ++running[SubmitterOf(entry.job.spec())];
  }
  return running;
}

JobQueue::Rank JobQueue::RankOf(const Entry& entry, const std::map<std::string, int>& running,
                                const UseByUser& used) const {
  const std::string& user = SubmitterOf(entry.job.spec());
  const auto tuned = running.find(user);
  return {-entry.job.spec().priority(), tuned == running.end() ? 0 : tuned->second, used ? used(user) : 0.0,
          entry.number};
}

const JobQueue::Entry* JobQueue::First(const std::map<std::string, int>& running, const UseByUser& used) const {
  const Entry* best = nullptr;
  for (const auto& [id, entry] : jobs_) {
    if (!Ready(entry)) continue;
    if (best == nullptr || RankOf(entry, running, used) < RankOf(*best, running, used)) best = &entry;
  }
  return best;
}

std::map<std::string, int> JobQueue::JobsAhead(const UseByUser& used) const {
  const std::map<std::string, int> running = RunningByUser();
  std::vector<std::pair<Rank, std::string>> ready;
  for (const auto& [id, entry] : jobs_) {
    if (Ready(entry)) ready.emplace_back(RankOf(entry, running, used), id);
  }
  std::sort(ready.begin(), ready.end());
  std::map<std::string, int> places;
  for (const auto& [rank, id] : ready) places.emplace(id, static_cast<int>(places.size()));
  return places;
}

void JobQueue::EndLeasesOf(const std::string& tuner_id, const std::string& boot_id, absl::Time now) {
  for (auto& [id, entry] : jobs_) {
    if (entry.job.state() != v1::JOB_STATE_RUNNING || entry.tuner_id != tuner_id) continue;
    entry.boot_id == boot_id ? ReturnJob(entry, now) : LoseTuner(entry, now);
  }
}

void JobQueue::RemoveTuner(const std::string& tuner_id, const std::string& boot_id, absl::Time now) {
  EndLeasesOf(tuner_id, boot_id, now);
  left_[{tuner_id, boot_id}] = now;
}

std::optional<JobQueue::Grant> JobQueue::Lease(const std::string& tuner_id, const std::string& boot_id, absl::Time now,
                                               const UseByUser& used) {
  if (left_.count({tuner_id, boot_id}) > 0) return std::nullopt;
  tuner_asked_ = now;
  EndLeasesOf(tuner_id, boot_id, now);
  const Entry* first = First(RunningByUser(), used);
  if (first == nullptr) return std::nullopt;
  Entry& entry = jobs_.at(first->job.id());
  entry.tuner_id = tuner_id;
  entry.boot_id = boot_id;
  entry.last_heard = entry.leased = now;
  entry.lease_id = draw_id_();
  entry.epoch = incarnation_ << 32 | ++next_epoch_;
  entry.job.set_attempts(entry.job.attempts() + 1);
  if (!entry.job.has_started()) *entry.job.mutable_started() = Stamp(now);
  SetState(entry, v1::JOB_STATE_RUNNING, now);
  return Grant{LeaseOf(entry), &entry.job};
}

bool JobQueue::HasTuner(absl::Time now) const {
  return now - tuner_asked_ < kTunerCallsWithin ||
         std::ranges::any_of(jobs_, [](const auto& entry) { return Tuned(entry.second); });
}

void JobQueue::SetBlocked(const std::string& job_id, const std::string& why, absl::Time now) {
  Entry& entry = jobs_.at(job_id);
  if (!why.empty()) {
    entry.ready = absl::InfinitePast();
  } else if (entry.ready == absl::InfinitePast()) {
    entry.ready = now;
  }
  entry.blocked = why;
}

void JobQueue::Pin(const std::string& job_id, const v1::Requirements& needs) {
  v1::Job& job = jobs_.at(job_id).job;
  if (!job.needs().fingerprint_digest().empty() || needs.fingerprint_digest().empty()) return;
  *job.mutable_needs() = needs;
  changed_.insert(job_id);
}

void JobQueue::NoteKind(const std::string& job_id, const std::string& kind) {
  const auto found = jobs_.find(job_id);
  if (found != jobs_.end() && found->second.job.state() == v1::JOB_STATE_RUNNING) found->second.kind = kind;
}

std::string JobQueue::KindOf(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return "";
  const v1::Job& job = found->second.job;
  if (!job.needs().fingerprint_digest().empty()) return job.needs().fingerprint_digest();
  return job.spec().device_kind().empty() ? found->second.kind : job.spec().device_kind();
}

// The running job that `first` may preempt, or nullptr. If there are several: the one of the lowest priority, then of
// the user with the most running jobs, then the one leased last.
JobQueue::Entry* JobQueue::Last(const Entry& first, const std::map<std::string, int>& running, const UseByUser& used) {
  const auto tuned = [&](const Entry& entry) { return std::get<1>(RankOf(entry, running, used)); };
  const auto rank = [&](const Entry& entry) {
    return std::tuple(-entry.job.spec().priority(), tuned(entry), entry.leased);
  };
  Entry* last = nullptr;
  for (auto& [id, entry] : jobs_) {
    if (!Tuned(entry)) continue;
    const int more = first.job.spec().priority() - entry.job.spec().priority();
    if (more < 0 || (more == 0 && tuned(entry) < tuned(first) + 2)) continue;
    if (last == nullptr || rank(*last) < rank(entry)) last = &entry;
  }
  return last;
}

void JobQueue::Preempt(absl::Time now, const UnservedJobs& absent, const UseByUser& used) {
  const std::map<std::string, int> running = RunningByUser();
  const Entry* first = First(running, used);
  if (first == nullptr) return;
  const absl::Duration waited = std::min(now - first->ready, now - preempted_);
  Entry* last = nullptr;
  if (!absent.empty() && waited >= options_.preempt_absent_when_wanted_for) {
    last = &jobs_.at(absent.begin()->first);
    *last->job.mutable_needs() = absent.begin()->second;
  } else if (waited >= options_.preempt_after) {
    last = Last(*first, running, used);
  }
  if (last == nullptr) return;
  preempted_ = now;
  ReturnJob(*last, now);
}

std::string JobQueue::TunerOf(const std::string& job_id) const { return NameOfTuner(jobs_.at(job_id).tuner_id); }

absl::Status JobQueue::CheckQuota(const std::string& tuner_id) const {
  const std::string name = NameOfTuner(tuner_id);
  const auto leased = std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return Tuned(entry.second) && entry.second.tuner_id != tuner_id && NameOfTuner(entry.second.tuner_id) == name;
  });
  if (leased < options_.leased_jobs_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("tuners of '{}' work on {} jobs, the most for one name; run fewer tuners, or let others join under "
                  "another name (hone token create --role tuner)",
                  name, leased));
}

v1::JobLease JobQueue::LeaseOf(const Entry& entry) {
  v1::JobLease lease;
  lease.set_lease_id(entry.lease_id);
  lease.set_job_id(entry.job.id());
  lease.set_epoch(entry.epoch);
  return lease;
}

absl::StatusOr<JobQueue::Entry*> JobQueue::Live(const v1::JobLease& lease) {
  auto found = jobs_.find(lease.job_id());
  const bool known = found != jobs_.end() && !lease.lease_id().empty();
  if (!known || found->second.lease_id != lease.lease_id() || found->second.epoch != lease.epoch()) {
    return absl::AbortedError(fmt::format("lease '{}' of job '{}' has ended; drop its work and lease again",
                                          lease.lease_id(), lease.job_id()));
  }
  return &found->second;
}

absl::StatusOr<bool> JobQueue::RenewLease(const v1::JobLease& lease, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(Entry * entry, Live(lease));
  entry->last_heard = now;
  if (entry->job.state() == v1::JOB_STATE_CANCELLED) return true;
  if (Ended(entry->job)) return absl::AbortedError(fmt::format("job '{}' has ended", lease.job_id()));
  return false;
}

absl::StatusOr<bool> JobQueue::Report(const v1::JobLease& lease, const v1::JobProgress& progress, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(const bool cancelled, RenewLease(lease, now));
  if (cancelled) return true;
  Entry& entry = jobs_.at(lease.job_id());
  const v1::JobProgress& before = entry.job.progress();
  const bool is_news = progress.search_ended() && !before.search_ended();
  const bool fruitful = is_news || progress.trials() > before.trials();
  HONE_RETURN_IF_ERROR(SetProgress(entry, progress, now));
  if (fruitful) entry.job.set_fruitless(0);
  // Storing progress writes the whole job, so it is not done for every report.
  if (is_news || now - entry.stored >= options_.store_progress_every) {
    entry.stored = now;
    changed_.insert(lease.job_id());
  }
  v1::JobEvent event;
  *event.mutable_progress() = progress;
  AddEvent(entry, std::move(event), now);
  return false;
}

absl::Status JobQueue::SetProgress(Entry& entry, const v1::JobProgress& report, absl::Time now) {
  v1::JobProgress progress = InFull(report, entry.job.progress());
  if (progress.workloads_size() > entry.job.spec().workloads_size()) {
    return absl::InvalidArgumentError(fmt::format("the report has {} workloads, and job '{}' has {}",
                                                  progress.workloads_size(), entry.job.id(),
                                                  entry.job.spec().workloads_size()));
  }
  if (const size_t bytes = progress.ByteSizeLong(); bytes > kProgressBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the report has {} bytes; the limit is {}", bytes, kProgressBytesMax));
  }
  if (progress.has_latency_after_seconds()) {
    entry.latency.Add({now + wall_offset_, progress.seconds(), progress.trials(), progress.latency_after_seconds()});
  }
  entry.progress_bytes = MemoryOf(progress);
  *entry.job.mutable_progress() = std::move(progress);
  return absl::OkStatus();
}

absl::Status JobQueue::Complete(const v1::CompleteJobRequest& request, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(Entry * entry, Live(request.lease()));
  if (Ended(entry->job)) return absl::OkStatus();  // a repeated call, or the job was cancelled meanwhile
  if (request.has_progress()) HONE_RETURN_IF_ERROR(SetProgress(*entry, request.progress(), now));
  if (request.returned()) {
    HONE_RETURN_IF_ERROR(CheckRequirements(request.needs()));
    if (request.has_needs()) *entry->job.mutable_needs() = request.needs();
    ReturnJob(*entry, now);
    return absl::OkStatus();
  }
  entry->job.set_error(TruncateUtf8(request.error()));
  SetState(*entry, request.error().empty() ? v1::JOB_STATE_SUCCEEDED : v1::JOB_STATE_FAILED, now);
  return absl::OkStatus();
}

absl::StatusOr<const v1::Job*> JobQueue::Cancel(const std::string& job_id, absl::Time now) {
  auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return NoSuchJob(job_id);
  if (!Ended(found->second.job)) SetState(found->second, v1::JOB_STATE_CANCELLED, now);
  return &found->second.job;
}

void JobQueue::Expire(absl::Time now) {
  for (auto& [id, entry] : jobs_) {
    if (Tuned(entry) && now - entry.last_heard > options_.lease_ttl) LoseTuner(entry, now);
    EndPastDeadline(entry, now);
  }
  for (auto left = left_.begin(); left != left_.end();) {
    left = now - left->second > options_.lease_ttl ? left_.erase(left) : std::next(left);
  }
  ForgetEnded(now);
}

// Ends a job whose JobSpec.until has passed. A tuner ends its job in time; jobs that are queued, and jobs whose tuner
// is late by until_grace, end here with the results they have.
void JobQueue::EndPastDeadline(Entry& entry, absl::Time now) {
  const v1::JobSpec& spec = entry.job.spec();
  if (Ended(entry.job) || !spec.has_until()) return;
  const bool running = entry.job.state() == v1::JOB_STATE_RUNNING;
  const absl::Duration grace = Tuned(entry) ? options_.until_grace : absl::ZeroDuration();
  if (now + wall_offset_ < FromProto(spec.until()) + grace) return;
  const v1::JobProgress& progress = entry.job.progress();
  const bool measured =
      progress.trials() > 0 || progress.has_latency_after_seconds();  // records of earlier runs count, too
  if (!measured) {
    entry.job.set_error(
        fmt::format("the time of the job (--until) ended before anything was measured; it waited for {}",
                    running                  ? "its first result"
                    : !entry.blocked.empty() ? entry.blocked
                    : NeedsTuner(entry)      ? "a tuner"
                                             : "its turn on a device"));
  }
  if (measured) NoteUnconfirmed(entry, "the time of the job (--until) was over before the whole model was measured");
  SetState(entry, measured ? v1::JOB_STATE_SUCCEEDED : v1::JOB_STATE_FAILED, now);
}

void JobQueue::NoteUnconfirmed(Entry& entry, const std::string& why) {
  v1::JobProgress& progress = *entry.job.mutable_progress();
  if (!entry.job.spec().has_model() || progress.has_confirmation()) return;
  progress.mutable_confirmation()->set_problem(why);
  entry.progress_bytes = MemoryOf(progress);
}

// Whether a client that watches the job, or the receiver of its notice, may not have learned of its end yet.
bool JobQueue::MustBeKept(const Entry& ended, absl::Time now) const {
  const bool tells = !ended.job.spec().notify_url().empty() && !ended.job.notice().closed();
  return now - ended.ended <= (tells ? options_.keep_ended_unnotified : options_.keep_ended_unseen);
}

void JobQueue::ForgetEnded(absl::Time now) {
  std::vector<std::pair<absl::Time, std::string>> ended;
  for (const auto& [id, entry] : jobs_) {
    if (Ended(entry.job)) ended.emplace_back(entry.ended, id);
  }
  std::sort(ended.begin(), ended.end(), std::greater<>());
  const auto kept = static_cast<size_t>(options_.ended_max), news = static_cast<size_t>(options_.ended_unseen_max);
  size_t bytes = 0;
  for (size_t i = 0; i < ended.size(); ++i) {
    const auto& [when, id] = ended[i];
    bytes += jobs_.at(id).spec_bytes + jobs_.at(id).progress_bytes;
    const bool due = i >= kept || now - when > options_.keep_ended;
    const bool must_be_kept = i < kept + news && MustBeKept(jobs_.at(id), now);
    if (bytes <= options_.ended_bytes_max && (!due || must_be_kept)) continue;
    by_request_id_.erase(jobs_.at(id).job.spec().request_id());
    jobs_.erase(id);
    changed_.erase(id);
    news_.erase(id);
    forgotten_.push_back(id);
  }
}

std::vector<std::string> JobQueue::TakeForgotten() { return std::exchange(forgotten_, {}); }

void JobQueue::LoseTuner(Entry& entry, absl::Time now) {
  entry.lease_id.clear();
  entry.tuner_id.clear();
  entry.job.set_fruitless(entry.job.fruitless() + 1);
  if (entry.job.fruitless() >= options_.fruitless_leases_max && entry.job.progress().search_ended()) {
    NoteUnconfirmed(entry,
                    fmt::format("{} tuners in a row were lost while they had the whole model measured; see their "
                                "logs",
                                entry.job.fruitless()));
    SetState(entry, v1::JOB_STATE_SUCCEEDED, now);
  } else if (entry.job.fruitless() >= options_.fruitless_leases_max) {
    entry.job.set_error(
        fmt::format("{} tuners in a row were lost while they worked on it and finished no trial; see their logs",
                    entry.job.fruitless()));
    SetState(entry, v1::JOB_STATE_FAILED, now);
  } else {
    SetState(entry, v1::JOB_STATE_QUEUED, now);
  }
}

// Queues a running job again. The attempt is not counted.
void JobQueue::ReturnJob(Entry& entry, absl::Time now) {
  entry.lease_id.clear();
  entry.tuner_id.clear();
  entry.job.set_attempts(std::max(0, entry.job.attempts() - 1));
  SetState(entry, v1::JOB_STATE_QUEUED, now);
}

void JobQueue::ExcludeStall(absl::Duration stall, absl::Time now) {
  for (auto& [id, entry] : jobs_) {
    entry.last_heard = std::min(now, entry.last_heard + stall);
    entry.ready += stall;
  }
  for (auto& [tuner, since] : left_) since += stall;
  preempted_ += stall;
}

void JobQueue::SetState(Entry& entry, v1::JobState state, absl::Time now) {
  const bool was_running = entry.job.state() == v1::JOB_STATE_RUNNING, was_open = !Ended(entry.job);
  if (state == v1::JOB_STATE_QUEUED) entry.ready = now;
  entry.kind.clear();
  entry.blocked.clear();
  entry.job.set_state(state);
  if (const bool is_open = !Ended(entry.job); is_open != was_open) {
    is_open ? files_.Add(entry.job.id(), FilesOf(entry.job.spec()))
            : files_.Remove(entry.job.id(), FilesOf(entry.job.spec()));
  }
  if (was_running || (!NeedsTuner(entry) && Ended(entry.job))) released_.push_back(entry.job.id());
  changed_.insert(entry.job.id());
  v1::JobEvent event;
  event.set_state(state);
  AddEvent(entry, std::move(event), now);
  if (!Ended(entry.job)) return;
  entry.ended = now;
  *entry.job.mutable_ended() = Stamp(now);
  while (entry.events.size() > kEventsKeptAfterEnd) DropOldestEvent(entry);
}

void JobQueue::DropOldestEvent(Entry& entry) {
  entry.events_bytes -= entry.events.front().ByteSizeLong();
  entry.events.pop_front();
}

void JobQueue::AddEvent(Entry& entry, v1::JobEvent event, absl::Time now) {
  news_.insert(entry.job.id());
  event.set_sequence(++entry.last_sequence);
  *event.mutable_time() = Stamp(now);
  entry.events_bytes += event.ByteSizeLong();
  entry.events.push_back(std::move(event));
  while (entry.events.size() > kEventsKeptMax || (entry.events.size() > 1 && entry.events_bytes > kEventsBytesMax)) {
    DropOldestEvent(entry);
  }
}

const v1::Job* JobQueue::Find(const std::string& job_id) const {
  auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : &found->second.job;
}

std::vector<LatencyHistory::Point> JobQueue::LatenciesOf(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? std::vector<LatencyHistory::Point>() : found->second.latency.points();
}

std::vector<const v1::Job*> JobQueue::List(const v1::ListJobsRequest& request) const {
  std::vector<const Entry*> entries;
  for (const auto& [id, entry] : jobs_) {
    if (request.only_open() && Ended(entry.job)) continue;
    if (request.group().empty() || request.group() == entry.job.spec().group()) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) { return a->number > b->number; });
  const auto limit = static_cast<size_t>(std::max(0, request.limit()));
  if (limit > 0 && entries.size() > limit) entries.resize(limit);
  std::vector<const v1::Job*> jobs;
  for (const Entry* entry : entries) jobs.push_back(&entry->job);
  return jobs;
}

// The workloads are swapped out while the rest is copied, because clearing the texts in a full copy would keep their
// memory.
v1::Job JobQueue::WithoutWorkloadTexts(const std::string& job_id) {
  v1::Job& job = jobs_.at(job_id).job;
  auto& workloads = *job.mutable_spec()->mutable_workloads();
  google::protobuf::RepeatedPtrField<v1::WorkloadSpec> aside;
  aside.Swap(&workloads);
  v1::Job shown = job;
  aside.Swap(&workloads);
  for (const v1::WorkloadSpec& workload : workloads) {
    v1::WorkloadSpec& line = *shown.mutable_spec()->add_workloads();
    line.set_digest(workload.digest());
    line.set_count(workload.count());
    line.set_op(workload.op());
    line.set_flops(workload.flops());
    line.set_title(workload.title());
    line.set_sizes(workload.sizes());
    *line.mutable_nodes() = workload.nodes();
  }
  if (shown.spec().has_model()) shown.mutable_spec()->mutable_model()->clear_files();
  if (shown.progress().has_confirmation()) shown.mutable_progress()->mutable_confirmation()->clear_run();
  return shown;
}

std::vector<v1::JobEvent> JobQueue::Events(const std::string& job_id, int64_t after) const {
  std::vector<v1::JobEvent> events;
  auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return events;
  for (const v1::JobEvent& event : found->second.events) {
    if (event.sequence() > after) events.push_back(event);
  }
  return events;
}

bool JobQueue::HasEvents(const std::string& job_id, int64_t after) const {
  const auto found = jobs_.find(job_id);
  return found != jobs_.end() && !found->second.events.empty() && found->second.events.back().sequence() > after;
}

bool JobQueue::waiting() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) { return Ready(entry.second); });
}

std::vector<const v1::Job*> JobQueue::InState(v1::JobState state) const {
  std::vector<const v1::Job*> jobs;
  for (const auto& [id, entry] : jobs_) {
    if (entry.job.state() == state) jobs.push_back(&entry.job);
  }
  return jobs;
}

int JobQueue::open() const {
  return static_cast<int>(
      std::count_if(jobs_.begin(), jobs_.end(), [](const auto& e) { return !Ended(e.second.job); }));
}

std::vector<std::string> JobQueue::TakeReleased() { return std::exchange(released_, {}); }

std::vector<const v1::Job*> JobQueue::TakeChanged() {
  std::vector<const v1::Job*> changed;
  for (const std::string& id : changed_) changed.push_back(&jobs_.at(id).job);
  changed_.clear();
  return changed;
}

}  // namespace hone::tracker
