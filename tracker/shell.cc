// SPDX-License-Identifier: Apache-2.0
#include "tracker/shell.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "base/identity.h"
#include "base/status.h"
#include "proto/convert.h"
#include "tracker/convert.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kHeldCallWaitMax = absl::Seconds(20);
constexpr absl::Duration kTick = absl::Milliseconds(500);
constexpr absl::Duration kClockStepMin = absl::Milliseconds(100);    // smaller changes of the wall offset are noise
constexpr absl::Duration kAgentCheckPeriod = absl::Seconds(2);       // rare, because thousands of agents wait
constexpr absl::Duration kDeadlinePeriod = absl::Milliseconds(100);  // how often deadlines of held calls are checked

absl::Time DeadlineOf(const google::protobuf::Duration& max_wait, absl::Time now) {
  const absl::Duration asked = FromProto(max_wait);
  return now + std::clamp(asked, absl::ZeroDuration(), kHeldCallWaitMax);
}

absl::Status Stopping() { return absl::UnavailableError("the tracker is stopping; call again"); }

// The answer when storing failed. Callers cannot solve a failure of the tracker's disk, so they are told to call again.
absl::Status StorageUnavailable(const absl::Status& stored) {
  return absl::UnavailableError("the tracker cannot store anything now; call again: " + std::string(stored.message()));
}

// The part of a request that Farm::Offer needs.
v1::SynchronizeRequest CallerPart(const v1::SynchronizeRequest& request) {
  v1::SynchronizeRequest who;
  who.set_agent_id(request.agent_id());
  who.set_boot_id(request.boot_id());
  who.set_sequence(request.sequence());
  return who;
}

// Shows a job whose end is not stored yet as an open job that waits for the tracker's disk, because after a crash it
// would be open again.
void HideEnds(const std::set<std::string>& unstored, v1::Job& job) {
  if (!JobQueue::Ended(job) || !unstored.contains(job.id())) return;
  job.set_state(job.has_started() ? v1::JOB_STATE_RUNNING : v1::JOB_STATE_QUEUED);
  job.clear_ended();
  job.clear_error();
  job.set_waiting_for("the tracker's disk, to store the end of the job");
}

void HideEnds(const std::set<std::string>& unstored, v1::ListJobsResponse& response) {
  for (v1::Job& job : *response.mutable_jobs()) HideEnds(unstored, job);
}

void HideEnds(const std::set<std::string>& unstored, std::vector<v1::Job>& jobs) {
  for (v1::Job& job : jobs) HideEnds(unstored, job);
}

void HideEnds(const std::set<std::string>& unstored, v1::WatchJobResponse& response) {
  HideEnds(unstored, *response.mutable_job());
}

// Responses that show no job.
void HideEnds(const std::set<std::string>& /*unstored*/, const v1::WaitBatchResponse& /*response*/) {}
void HideEnds(const std::set<std::string>& /*unstored*/, const v1::FleetWatch& /*response*/) {}
void HideEnds(const std::set<std::string>& /*unstored*/, const v1::ListFleetWatchesResponse& /*response*/) {}

}  // namespace

// One turn on the farm: a scope that holds the lock. Its destructor hands changes over to be stored, collects answers
// for the held calls that they concern, releases the lock, and then sends all answers.
class Shell::Turn {
 public:
  explicit Turn(Shell* shell) : shell_(shell), lock_(shell->mutex_) {
    shell->farm_.SetStorageFailure(shell->commit_.FailureReason());  // "" while storing works
    if (shell->commit_.HasPendingChanges()) return;
    shell->unstored_ends_.clear();
    shell->unstored_nights_.clear();
  }
  ~Turn() {
    GroupCommit::Changes changes = shell_->TakeChanges(*this);
    if (!changes.empty() || !when_stored_.empty()) {
      shell_->commit_.AddChanges(std::move(changes), [told = std::move(when_stored_)](const absl::Status& stored) {
        for (const GroupCommit::Told& tell : told) tell(stored);
      });
    }
    lock_.unlock();
    for (const std::function<void()>& answer : answers_) answer();
  }
  Turn(const Turn&) = delete;

  template <typename Response>
  void Answer(Done<Response> done, absl::StatusOr<Response> response) {
    answers_.push_back([done = std::move(done), response = std::move(response)] { done(response); });
  }

  // Answers when all changes so far are stored. If storing fails, the call fails with kUnavailable and must be
  // repeated.
  template <typename Response>
  void AnswerWhenStored(Done<Response> done, absl::StatusOr<Response> response) {
    when_stored_.push_back([done = std::move(done), response = std::move(response)](const absl::Status& stored) {
      stored.ok() || !response.ok() ? done(response) : done(StorageUnavailable(stored));
    });
  }

  // Answers a call that only reads, when everything it reports is stored. If storing fails, it is answered with the
  // current state, except that ends of jobs are hidden, because a reported end must not be undone by a crash.
  template <typename Response>
  void AnswerRead(Done<Response> done, absl::StatusOr<Response> response) {
    if (!shell_->commit_.HasPendingChanges() && !changes_) return Answer(std::move(done), std::move(response));
    when_stored_.push_back([done = std::move(done), response = std::move(response),
                            unstored = shell_->unstored_ends_](const absl::Status& stored) mutable {
      if (!stored.ok() && response.ok()) HideEnds(unstored, *response);
      done(std::move(response));
    });
  }

  // Finished batches are reported when they are stored, because the tracker itself records candidates that it gave up.
  void AnswerBatchWait(Done<v1::WaitBatchResponse> done, absl::StatusOr<v1::WaitBatchResponse> response) {
    const bool finished = response.ok() && response->finished_size() > 0;
    finished ? AnswerWhenStored(std::move(done), std::move(response))
             : AnswerRead(std::move(done), std::move(response));
  }

  void Changed() { changes_ = true; }
  StateChanges drained;
  std::set<std::string> jobs;  // ids of jobs whose held calls must be looked at

 private:
  Shell* const shell_;
  std::unique_lock<std::mutex> lock_;
  bool changes_ = false;
  std::vector<std::function<void()>> answers_;
  std::vector<GroupCommit::Told> when_stored_;
};

Shell::Shell(FarmOptions options, FarmState state, records::Store* store, Clocks clocks)
    : clocks_(std::move(clocks)),
      farm_id_(state.farm_id()),
      farm_(std::move(options), state.incarnation(), RandomId, state.receipt_key()),
      commit_(std::move(state), store) {}

absl::StatusOr<std::unique_ptr<Shell>> Shell::Start(FarmOptions options, FarmState state, records::Store* store,
                                                    Clocks clocks) {
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, state.TakeJobs(clocks.wall()));
  HONE_ASSIGN_OR_RETURN(const auto drained, state.Drained());
  HONE_ASSIGN_OR_RETURN(auto health, state.Health());
  HONE_ASSIGN_OR_RETURN(std::vector<v1::FleetWatch> watches, state.Watches());
  std::unique_ptr<Shell> shell(new Shell(std::move(options), std::move(state), store, std::move(clocks)));
  for (const v1::Job& job : jobs) shell->specs_kept_.insert(job.id());
  shell->farm_.Restore(std::move(jobs), drained, std::move(health), std::move(watches));
  shell->ticker_ = std::thread([raw = shell.get()] { raw->TickLoop(); });
  return shell;
}

Shell::~Shell() {
  Stop();
  ticker_.join();
}

void Shell::Stop() {
  Turn turn(this);
  if (std::exchange(stopping_, true)) return;
  stopped_.notify_all();
  for (auto& [id, call] : std::exchange(agents_, {})) turn.Answer<v1::SynchronizeResponse>(call.done, Stopping());
  for (HeldTuner& call : std::exchange(tuners_, {})) turn.Answer<v1::LeaseJobResponse>(call.done, Stopping());
  for (auto& [id, call] : std::exchange(batch_waits_, {})) turn.Answer<v1::WaitBatchResponse>(call.done, Stopping());
  for (auto& [id, call] : std::exchange(watches_, {})) turn.Answer<v1::WatchJobResponse>(call.done, Stopping());
}

void Shell::TickLoop() {
  absl::Time next = Now();
  while (true) {
    {
      Turn turn(this);
      if (stopping_) return;
      const bool tick = Now() >= next;
      EndOverdue(turn, tick);
      if (tick) {
        Tick(turn);
        next = Now() + kTick;
      }
    }
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, absl::ToChronoMilliseconds(kDeadlinePeriod), [this] { return stopping_; });
  }
}

// All held calls of tuners and watchers are looked at, because they are few; those of agents are not, because they are
// many.
void Shell::Tick(Turn& turn) {
  const absl::Time now = Now();
  // The wall clock and the steady clock are read one after the other, so small differences are noise. Only a real step
  // of the wall clock may move the times that users see.
  const absl::Duration ahead = clocks_.wall() - now;
  if (absl::AbsDuration(ahead - farm_.jobs().wall_offset()) > kClockStepMin) farm_.SetWallOffset(ahead);
  for (const std::string& agent_id : storing_) farm_.NoteAlive(agent_id, now);
  farm_.Tick(now);
  for (const auto& [job_id, call] : batch_waits_) turn.jobs.insert(job_id);
  for (const auto& [job_id, call] : watches_) turn.jobs.insert(job_id);
}

void Shell::EndOverdue(Turn& turn, bool look_for_callers) {
  const absl::Time now = Now();
  const auto end = [&](auto& calls, const auto& call_of, const auto& answer) {
    for (auto entry = calls.begin(); entry != calls.end();) {
      auto& call = call_of(*entry);
      const bool over = now >= call.until || (look_for_callers && !call.present());
      if (over) answer(call);
      entry = over ? calls.erase(entry) : std::next(entry);
    }
  };
  const auto itself = [](auto& entry) -> auto& { return entry; };
  const auto second = [](auto& entry) -> auto& { return entry.second; };
  const auto with_nothing = [&]<typename Q, typename R>(HeldCall<Q, R>& call) {
    turn.Answer<R>(std::move(call.done), std::move(call.nothing));
  };
  if (look_for_callers && now >= agents_checked_ + kAgentCheckPeriod) {
    agents_checked_ = now;
    end(agents_, second, [&](HeldAgent& call) {
      if (now < call.until) farm_.NoteBrokenOff(call.request.agent_id(), now);
      with_nothing(call);
    });
  }
  EndOverdueAgents(turn);
  end(tuners_, itself, with_nothing);
  end(batch_waits_, second, with_nothing);
  // The job is read again, because it may have changed without an event.
  end(watches_, second, [&](HeldWatch& call) { turn.AnswerRead(std::move(call.done), Watched(call.request)); });
}

// There are thousands of agents, so deadlines are kept in order and only those that passed are looked at.
void Shell::EndOverdueAgents(Turn& turn) {
  const absl::Time now = Now();
  while (!agent_deadlines_.empty() && agent_deadlines_.begin()->first <= now) {
    const auto call = agents_.find(agent_deadlines_.begin()->second);
    agent_deadlines_.erase(agent_deadlines_.begin());
    if (call == agents_.end() || call->second.until > now) continue;  // it was answered before
    turn.Answer<v1::SynchronizeResponse>(std::move(call->second.done), std::move(call->second.nothing));
    agents_.erase(call);
  }
}

// --- the end of a turn -----------------------------------------------------------------------------------------------

GroupCommit::Changes Shell::TakeChanges(Turn& turn) {
  OfferNewWork(turn);
  LeaseWaitingJobs(turn);
  GroupCommit::Changes changes{.state = std::move(turn.drained), .rows = {}};
  for (const Recordable& given_up : farm_.TakeGivenUp()) {
    for (records::Record& row : ToRecords(farm_id_, given_up)) changes.rows.push_back(std::move(row));
    turn.jobs.insert(given_up.job_id);
    turn.Changed();
  }
  turn.jobs.merge(farm_.TakeJobsWithNewEvents());
  for (const v1::Job* job : farm_.TakeChangedJobs()) {
    changes.state.jobs[job->id()] = ToStored(*job, specs_kept_.insert(job->id()).second);
    if (JobQueue::Ended(*job)) unstored_ends_.insert(job->id());
    turn.Changed();
  }
  for (const auto& [device, health] : farm_.TakeChangedHealth()) {
    std::string record = health.SerializeAsString();
    changes.state.health[device] = record.empty() ? std::nullopt : std::optional(std::move(record));
    turn.Changed();
  }
  changes.state.watches = farm_.TakeChangedWatches();
  for (const auto& [key, row] : changes.state.watches) {
    unstored_nights_.insert(key);
    turn.Changed();
  }
  for (const std::string& job_id : farm_.TakeForgottenJobs()) {
    changes.state.jobs[job_id] = std::nullopt;
    specs_kept_.erase(job_id);
    turn.jobs.insert(job_id);
  }
  for (const std::string& job_id : turn.jobs) {
    AnswerBatchWaits(turn, job_id);
    AnswerWatches(turn, job_id);
  }
  return changes;
}

void Shell::OfferNewWork(Turn& turn) {
  if (!farm_.storage_failure().empty()) return;  // no work is given out then
  const auto held = [this](const std::string& agent_id) { return agents_.contains(agent_id); };
  while (const auto agent_id = farm_.NextAgentForNewWork(held, Now())) {
    if (!Offer(turn, *agent_id)) farm_.SkipNewlyQueued();
  }
}

bool Shell::Offer(Turn& turn, const std::string& agent_id) {
  const auto held = agents_.find(agent_id);
  if (held == agents_.end()) return false;
  absl::StatusOr<std::optional<v1::SynchronizeResponse>> offer = farm_.Offer(held->second.request, Now());
  if (offer.ok() && !offer->has_value()) return false;
  if (offer.ok()) {
    turn.Answer<v1::SynchronizeResponse>(std::move(held->second.done), **std::move(offer));
  } else {
    turn.Answer<v1::SynchronizeResponse>(std::move(held->second.done), offer.status());
  }
  agents_.erase(held);
  return true;
}

// Gives queued jobs to waiting tuners, first come first served.
void Shell::LeaseWaitingJobs(Turn& turn) {
  if (tuners_.empty() || !farm_.jobs().waiting() || !farm_.storage_failure().empty()) return;
  for (auto call = tuners_.begin(); call != tuners_.end();) {
    if (!call->present()) {  // a job leased to a tuner that is gone would wait until the lease expires
      turn.Answer<v1::LeaseJobResponse>(std::move(call->done), std::move(call->nothing));
      call = tuners_.erase(call);
      continue;
    }
    absl::StatusOr<v1::LeaseJobResponse> response = farm_.LeaseJob(call->request, Now());
    if (response.ok() && !response->has_lease()) break;
    turn.AnswerWhenStored(std::move(call->done), std::move(response));
    call = tuners_.erase(call);
  }
}

void Shell::AnswerBatchWaits(Turn& turn, const std::string& job_id) {
  for (auto [call, end] = batch_waits_.equal_range(job_id); call != end;) {
    absl::StatusOr<v1::WaitBatchResponse> response = farm_.WaitBatch(call->second.request, Now());
    const bool news = !response.ok() || response->finished_size() > 0 || response->cancelled();
    if (news) turn.AnswerBatchWait(std::move(call->second.done), std::move(response));
    call = news ? batch_waits_.erase(call) : std::next(call);
  }
}

void Shell::AnswerWatches(Turn& turn, const std::string& job_id) {
  const v1::Job* job = farm_.jobs().Find(job_id);
  for (auto [call, end] = watches_.equal_range(job_id); call != end;) {
    const bool news = job == nullptr || IsEndReportable(*job) ||
                      farm_.jobs().HasEvents(job_id, call->second.request.after_sequence());
    if (news) turn.AnswerRead(std::move(call->second.done), Watched(call->second.request));
    call = news ? watches_.erase(call) : std::next(call);
  }
}

// --- agents ----------------------------------------------------------------------------------------------------------

void Shell::Synchronize(const v1::SynchronizeRequest& request, Present present, Done<v1::SynchronizeResponse> done) {
  std::vector<Recordable> results;
  if (request.finished_size() > 0) {
    Turn turn(this);
    results = farm_.AcceptableResults(request, Now());
    if (!results.empty()) storing_.insert(request.agent_id());
  }
  if (results.empty()) return TakeCall(request, present, done, std::nullopt);
  std::vector<records::Record> rows;
  for (const Recordable& result : results) {
    for (records::Record& row : ToRecords(farm_id_, result)) rows.push_back(std::move(row));
  }
  commit_.Append(std::move(rows), [this, &request, present = std::move(present), done = std::move(done)](
                                      const absl::Status& stored) { TakeCall(request, present, done, stored); });
}

void Shell::TakeCall(const v1::SynchronizeRequest& original, const Present& present,
                     const Done<v1::SynchronizeResponse>& done, const std::optional<absl::Status>& stored) {
  Turn turn(this);
  v1::SynchronizeRequest request = original;
  if (stored.has_value() && !stored->ok()) request = farm_.DeferResults(std::move(request));
  if (stored.has_value()) storing_.erase(storing_.find(request.agent_id()));
  for (const v1::LeaseResult& result : request.finished()) {
    turn.jobs.insert(farm_.JobOfLease(result.lease().lease_id()));
  }
  absl::StatusOr<Farm::Answer> answer = farm_.Synchronize(request, Now());
  if (!answer.ok()) return turn.Answer<v1::SynchronizeResponse>(done, answer.status());
  Offer(turn, request.agent_id());  // ends an older held call of the agent, which this call replaces
  const absl::Time until = std::min(DeadlineOf(request.max_wait(), Now()), Now() + answer->hold);
  if (answer->news || until <= Now()) {
    return turn.Answer<v1::SynchronizeResponse>(done, std::move(answer->response));
  }
  if (stopping_) return turn.Answer<v1::SynchronizeResponse>(done, Stopping());
  const absl::Duration held = until - Now();
  answer->response.mutable_held()->set_seconds(absl::ToInt64Seconds(held));  // rounded down: never more than it was
  agent_deadlines_.emplace(until, request.agent_id());
  agents_.emplace(request.agent_id(),
                  HeldAgent{CallerPart(request), std::move(answer->response), until, present, done});
}

// --- tuners ----------------------------------------------------------------------------------------------------------

void Shell::LeaseJob(const v1::LeaseJobRequest& request, Present present, Done<v1::LeaseJobResponse> done) {
  Turn turn(this);
  // The caller is gone already. A tuner that leaves must not get a job after it has returned all of them.
  if (!present()) return turn.Answer<v1::LeaseJobResponse>(std::move(done), absl::CancelledError("the caller is gone"));
  absl::StatusOr<v1::LeaseJobResponse> response = farm_.LeaseJob(request, Now());
  if (!response.ok()) return turn.Answer<v1::LeaseJobResponse>(std::move(done), std::move(response));
  if (response->has_lease() || request.leaving()) return turn.AnswerWhenStored(std::move(done), std::move(response));
  const absl::Time until = DeadlineOf(request.max_wait(), Now());
  if (until <= Now()) return turn.Answer<v1::LeaseJobResponse>(std::move(done), std::move(response));
  if (stopping_) return turn.Answer<v1::LeaseJobResponse>(std::move(done), Stopping());
  tuners_.push_back({request, *std::move(response), until, std::move(present), std::move(done)});
}

void Shell::ReportProgress(const v1::ReportProgressRequest& request, Done<v1::ReportProgressResponse> done) {
  Turn turn(this);
  auto response = farm_.ReportProgress(request, Now());
  turn.AnswerWhenStored(std::move(done), std::move(response));
}

// Batches are not stored: a tuner submits its open batches again after a restart of the tracker.
void Shell::SubmitBatch(const v1::SubmitBatchRequest& request, Done<v1::SubmitBatchResponse> done) {
  Turn turn(this);
  turn.Answer(std::move(done), farm_.SubmitBatch(request, Now()));
}

void Shell::WaitBatch(const v1::WaitBatchRequest& request, Present present, Done<v1::WaitBatchResponse> done) {
  Turn turn(this);
  absl::StatusOr<v1::WaitBatchResponse> response = farm_.WaitBatch(request, Now());
  const absl::Time until = DeadlineOf(request.max_wait(), Now());
  const bool news = !response.ok() || response->finished_size() > 0 || response->cancelled();
  if (news || until <= Now()) return turn.AnswerBatchWait(std::move(done), std::move(response));
  if (stopping_) return turn.Answer<v1::WaitBatchResponse>(std::move(done), Stopping());
  // A tuner makes at most one call per open batch. With more calls than that, the oldest is ended.
  const auto [oldest, end] = batch_waits_.equal_range(request.lease().job_id());
  if (std::distance(oldest, end) >= kQuotas.open_batches) {
    turn.Answer<v1::WaitBatchResponse>(std::move(oldest->second.done), std::move(oldest->second.nothing));
    batch_waits_.erase(oldest);
  }
  v1::WaitBatchRequest waits;  // without the acknowledgements, which were taken above
  *waits.mutable_lease() = request.lease();
  *waits.mutable_batch_ids() = request.batch_ids();
  batch_waits_.emplace(request.lease().job_id(),
                       HeldBatchWait{std::move(waits), {}, until, std::move(present), std::move(done)});
}

void Shell::CompleteJob(const v1::CompleteJobRequest& request, Done<v1::CompleteJobResponse> done) {
  Turn turn(this);
  const absl::Status status = farm_.CompleteJob(request, Now());
  absl::StatusOr<v1::CompleteJobResponse> response = v1::CompleteJobResponse();
  if (!status.ok()) response = status;
  turn.AnswerWhenStored(std::move(done), std::move(response));
}

// --- clients and operators -------------------------------------------------------------------------------------------

bool Shell::SubmitJob(const v1::JobSpec& spec, Done<v1::Job> done) {
  Turn turn(this);
  const bool known = farm_.jobs().HasRequest(spec.request_id());
  auto job = farm_.SubmitJob(spec, Now());
  const bool changed = job.ok() && !known;
  turn.AnswerWhenStored(std::move(done), std::move(job));
  return changed;
}

void Shell::GetJob(const std::string& job_id, Done<v1::Job> done) {
  Turn turn(this);
  turn.AnswerRead(std::move(done), farm_.GetJob(job_id, Now()));
}

void Shell::GetJobSummaries(const std::vector<std::string>& ids, Done<std::vector<v1::Job>> done) {
  Turn turn(this);
  turn.AnswerRead<std::vector<v1::Job>>(std::move(done), farm_.GetJobSummaries(ids, Now()));
}

void Shell::ListJobs(const v1::ListJobsRequest& request, Done<v1::ListJobsResponse> done) {
  if (request.limit() < 0) return done(absl::InvalidArgumentError("the limit of jobs is below 0; give 0 for all"));
  Turn turn(this);
  v1::ListJobsResponse response;
  for (v1::Job& job : farm_.ListJobs(request, Now())) *response.add_jobs() = std::move(job);
  turn.AnswerRead<v1::ListJobsResponse>(std::move(done), std::move(response));
}

// Whether the job ended and its end may be reported. An end that cannot be stored is reported once it is stored.
bool Shell::IsEndReportable(const v1::Job& job) const {
  return JobQueue::Ended(job) && (farm_.storage_failure().empty() || !unstored_ends_.contains(job.id()));
}

absl::StatusOr<v1::WatchJobResponse> Shell::Watched(const v1::WatchJobRequest& request) {
  HONE_ASSIGN_OR_RETURN(v1::WatchJobResponse response, farm_.WatchJob(request, Now()));
  response.set_trouble(farm_.storage_failure());
  return response;
}

void Shell::EndFirstWatchOf(Turn& turn, const std::string& who) {
  auto first = watches_.end();
  int waiting = 0;
  for (auto call = watches_.begin(); call != watches_.end(); ++call) {
    if (call->second.who != who) continue;
    ++waiting;
    if (first == watches_.end() || call->second.until < first->second.until) first = call;
  }
  if (waiting < kQuotas.watches) return;
  turn.AnswerRead(std::move(first->second.done), Watched(first->second.request));
  watches_.erase(first);
}

void Shell::WatchJob(const v1::WatchJobRequest& request, const std::string& who, Present present,
                     Done<v1::WatchJobResponse> done) {
  Turn turn(this);
  absl::StatusOr<v1::WatchJobResponse> response = Watched(request);
  const absl::Time until = DeadlineOf(request.max_wait(), Now());
  const bool news = !response.ok() || response->events_size() > 0 || IsEndReportable(response->job());
  if (news || until <= Now() || stopping_) return turn.AnswerRead(std::move(done), std::move(response));
  EndFirstWatchOf(turn, who);
  // No answer for the deadline is kept, because it may have megabytes; the job is read at the deadline instead.
  watches_.emplace(request.job_id(), HeldWatch{request, {}, until, std::move(present), std::move(done), who});
}

bool Shell::CancelJob(const std::string& job_id, Done<v1::Job> done) {
  Turn turn(this);
  const v1::Job* const before = farm_.jobs().Find(job_id);
  const bool open = before != nullptr && !JobQueue::Ended(*before);
  auto job = farm_.CancelJob(job_id, Now());
  const bool changed = job.ok() && open;
  turn.AnswerWhenStored(std::move(done), std::move(job));
  return changed;
}

std::vector<v1::Job> Shell::JobsToNotify() {
  Turn turn(this);  // clears unstored_ends_ if everything is stored
  std::vector<v1::Job> jobs;
  for (const v1::Job* job : farm_.jobs().JobsToNotify()) {
    if (!unstored_ends_.contains(job->id())) jobs.push_back(JobQueue::SummaryOf(*job));
  }
  return jobs;
}

void Shell::RecordNotice(const std::string& job_id, const v1::JobNotice& notice) {
  Turn turn(this);
  farm_.RecordNotice(job_id, notice);
}

std::vector<std::string> Shell::TakeUnneededPackages() {
  Turn turn(this);
  return farm_.TakeUnneededPackages();
}

void Shell::AddWatch(const v1::FleetWatchSpec& spec, Done<v1::FleetWatch> done) {
  Turn turn(this);
  turn.AnswerWhenStored(std::move(done), farm_.AddWatch(spec, Now()));
}

void Shell::RunWatch(const std::string& name, const std::optional<std::string>& submitter, Done<v1::FleetWatch> done) {
  Turn turn(this);
  turn.AnswerWhenStored(std::move(done), farm_.RunWatch(name, submitter, Now()));
}

void Shell::AcceptNight(const std::string& name, const std::string& device, const std::optional<std::string>& submitter,
                        Done<v1::FleetWatch> done) {
  Turn turn(this);
  turn.AnswerWhenStored(std::move(done), farm_.AcceptNight(name, device, submitter, Now()));
}

void Shell::RemoveWatch(const std::string& name, const std::optional<std::string>& submitter,
                        Done<v1::RemoveFleetWatchResponse> done) {
  Turn turn(this);
  const absl::Status removed = farm_.RemoveWatch(name, submitter, Now());
  absl::StatusOr<v1::RemoveFleetWatchResponse> response = v1::RemoveFleetWatchResponse();
  if (!removed.ok()) response = removed;
  turn.AnswerWhenStored(std::move(done), std::move(response));
}

void Shell::GetWatch(const std::string& name, Done<v1::FleetWatch> done) {
  Turn turn(this);
  turn.AnswerRead(std::move(done), farm_.GetWatch(name, Now()));
}

void Shell::ListWatches(Done<v1::ListFleetWatchesResponse> done) {
  Turn turn(this);
  v1::ListFleetWatchesResponse response;
  for (v1::FleetWatch& watch : farm_.ListWatches(Now())) *response.add_watches() = std::move(watch);
  turn.AnswerRead<v1::ListFleetWatchesResponse>(std::move(done), std::move(response));
}

std::vector<NightNotice> Shell::NightsToNotify() {
  Turn turn(this);  // clears unstored_nights_ if everything is stored
  std::vector<NightNotice> notices = farm_.NightNotices();
  std::erase_if(notices,
                [&](const NightNotice& notice) { return unstored_nights_.contains({notice.watch, notice.device}); });
  return notices;
}

void Shell::RecordNotice(const NightNotice& sent, const v1::JobNotice& notice) {
  Turn turn(this);
  farm_.RecordNotice(sent, notice);
}

v1::ListDevicesResponse Shell::ListDevices(const v1::ListDevicesRequest& request) {
  Turn turn(this);
  v1::ListDevicesResponse response;
  for (v1::Device& device : farm_.ListDevices(request, Now())) *response.add_devices() = std::move(device);
  response.set_trouble(farm_.storage_failure());
  return response;
}

v1::ListTunersResponse Shell::ListTuners() {
  Turn turn(this);
  v1::ListTunersResponse response;
  for (v1::Tuner& tuner : farm_.ListTuners(Now())) *response.add_tuners() = std::move(tuner);
  return response;
}

template <typename Response>
void Shell::SetDrained(const std::string& agent_id, std::optional<std::string> reason, Done<Response> done) {
  if (agent_id.empty())
    return done(absl::InvalidArgumentError("the request names no agent; `hone devices` lists their names"));
  Turn turn(this);
  if (absl::Status storing = farm_.CheckStorage(); !storing.ok()) {
    return turn.Answer<Response>(std::move(done), std::move(storing));
  }
  reason.has_value() ? farm_.Drain(agent_id, *reason) : farm_.Undrain(agent_id);
  turn.drained.drained[agent_id] = std::move(reason);
  turn.AnswerWhenStored<Response>(std::move(done), Response());
  Offer(turn, agent_id);
}

void Shell::Drain(const std::string& agent_id, const std::string& reason, Done<v1::DrainResponse> done) {
  SetDrained<v1::DrainResponse>(agent_id, reason, std::move(done));
}

void Shell::Undrain(const std::string& agent_id, Done<v1::UndrainResponse> done) {
  SetDrained<v1::UndrainResponse>(agent_id, std::nullopt, std::move(done));
}

v1::GetFarmResponse Shell::Counters() {
  Turn turn(this);
  return farm_.Counters(Now());
}

void Shell::WithFarm(const std::function<void(const Farm&, absl::Time now)>& use) {
  const std::lock_guard lock(mutex_);
  use(farm_, Now());
}

}  // namespace hone::tracker
