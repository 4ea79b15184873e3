#include "tracker/shell.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "base/identity.h"
#include "base/status.h"
#include "tracker/convert.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(20);
constexpr absl::Duration kTick = absl::Milliseconds(500);

absl::Time DeadlineOf(const google::protobuf::Duration& max_wait, absl::Time now) {
  const absl::Duration asked = absl::Seconds(max_wait.seconds()) + absl::Nanoseconds(max_wait.nanos());
  return now + std::clamp(asked, absl::ZeroDuration(), kLongestWait);
}

absl::Status Stopping() { return absl::UnavailableError("the tracker is stopping; call again"); }

}  // namespace

Shell::Shell(FarmOptions options, FarmState state, records::Store* store)
    : farm_(std::move(options), state.incarnation(), RandomId, state.receipt_key()),
      state_(std::move(state)),
      store_(store) {}

absl::StatusOr<std::unique_ptr<Shell>> Shell::Start(FarmOptions options, FarmState state, records::Store* store) {
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, state.Jobs());
  HONE_ASSIGN_OR_RETURN(const auto drained, state.Drained());
  HONE_ASSIGN_OR_RETURN(auto health, state.Health());
  std::unique_ptr<Shell> shell(new Shell(std::move(options), std::move(state), store));
  shell->farm_.Restore(std::move(jobs), drained, std::move(health));
  shell->ticker_ = std::thread([raw = shell.get()] { raw->TickLoop(); });
  return shell;
}

Shell::~Shell() {
  Stop();
  ticker_.join();
}

void Shell::Stop() {
  const Lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  stopped_.notify_all();
}

absl::Time Shell::Now() const {
  return started_ + absl::FromChrono(std::chrono::steady_clock::now() - started_steady_);
}

void Shell::TickLoop() {
  Lock lock(mutex_);
  while (!stopping_) {
    farm_.Tick(Now());
    Settle().IgnoreError();  // it says so itself
    stopped_.wait_for(lock, absl::ToChronoMilliseconds(kTick));
  }
}

absl::Status Shell::Settle() {
  for (Recordable& given_up : farm_.TakeGivenUp()) unstored_.push_back(std::move(given_up));
  const absl::Status records = Append(unstored_);
  if (records.ok()) unstored_.clear();
  const absl::Status jobs = StoreJobs(), health = StoreHealth();
  const absl::Status& stored = !records.ok() ? records : !jobs.ok() ? jobs : health;
  NoteStored(Storing::What::kState, stored);
  changed_.notify_all();
  return stored;
}

void Shell::NoteStored(Storing::What what, const absl::Status& stored) {
  const std::string news = storing_.Note(what, stored, Now());
  farm_.SetTrouble(storing_.Trouble(Now()));
  if (!news.empty()) spdlog::log(stored.ok() ? spdlog::level::info : spdlog::level::err, "{}", news);
}

absl::Status Shell::StoreHealth() {
  const std::map<std::string, v1::HealthRecord> changed = farm_.TakeChangedHealth();
  const absl::Status saved = state_.SaveHealth(changed);
  if (!saved.ok()) farm_.KeepChangedHealth(changed);
  return saved;
}

absl::Status Shell::StoreJobs() {
  const std::vector<const v1::Job*> changed = farm_.TakeChangedJobs();
  const absl::Status saved = state_.Save(changed);
  if (!saved.ok()) farm_.KeepChanged(changed);
  return saved;
}

absl::Status Shell::Append(const std::vector<Recordable>& recordables) {
  std::vector<records::Record> rows;
  for (const Recordable& r : recordables) {
    std::vector<records::Record> more = ToRecords(state_.farm_id(), r);
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  if (rows.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const records::AppendReport report, store_->Append(rows));
  for (const records::Rejected& r : report.rejected)
    spdlog::error("a record was refused: {}", std::string(r.why.message()));
  return absl::OkStatus();
}

void Shell::StoreResults(v1::SynchronizeRequest* request) {
  const std::vector<Recordable> acceptable = farm_.Acceptable(*request, Now());
  if (acceptable.empty()) return;
  const absl::Status stored = Append(acceptable);
  NoteStored(Storing::What::kResults, stored);
  if (!stored.ok()) *request = farm_.KeepWaiting(std::move(*request));
}

bool Shell::Wait(Lock& lock, absl::Time deadline, const Present& present) {
  const absl::Time now = Now();
  if (stopping_ || now >= deadline || !present()) return false;
  // In slices, so that a caller who went away is noticed.
  changed_.wait_for(lock,
                    absl::ToChronoMilliseconds(std::min(deadline - now, absl::Seconds(1)) + absl::Milliseconds(1)));
  return !stopping_ && present();
}

absl::StatusOr<v1::SynchronizeResponse> Shell::Synchronize(const v1::SynchronizeRequest& original,
                                                           const Present& present) {
  v1::SynchronizeRequest request = original;
  Lock lock(mutex_);
  if (request.finished_size() > 0) StoreResults(&request);
  HONE_ASSIGN_OR_RETURN(Farm::Answer answer, farm_.Synchronize(request, Now()));
  HONE_RETURN_IF_ERROR(Settle());
  if (answer.news) return answer.response;
  const absl::Time deadline = std::min(DeadlineOf(request.max_wait(), Now()), Now() + answer.hold);
  while (Wait(lock, deadline, present)) {
    HONE_ASSIGN_OR_RETURN(std::optional<v1::SynchronizeResponse> offer, farm_.Offer(request, Now()));
    if (offer) return *std::move(offer);
  }
  if (stopping_) return Stopping();
  return answer.response;
}

absl::StatusOr<v1::LeaseJobResponse> Shell::LeaseJob(const v1::LeaseJobRequest& request, const Present& present) {
  Lock lock(mutex_);
  const absl::Time deadline = DeadlineOf(request.max_wait(), Now());
  do {
    HONE_ASSIGN_OR_RETURN(v1::LeaseJobResponse response, farm_.LeaseJob(request, Now()));
    HONE_RETURN_IF_ERROR(Settle());
    if (response.has_lease()) return response;
  } while (Wait(lock, deadline, present));
  if (stopping_) return Stopping();
  return v1::LeaseJobResponse();
}

absl::StatusOr<v1::ReportProgressResponse> Shell::ReportProgress(const v1::ReportProgressRequest& request) {
  const Lock lock(mutex_);
  auto response = farm_.ReportProgress(request, Now());
  HONE_RETURN_IF_ERROR(Settle());
  return response;
}

absl::StatusOr<v1::SubmitBatchResponse> Shell::SubmitBatch(const v1::SubmitBatchRequest& request) {
  const Lock lock(mutex_);
  auto response = farm_.SubmitBatch(request, Now());
  HONE_RETURN_IF_ERROR(Settle());
  return response;
}

absl::StatusOr<v1::WaitBatchResponse> Shell::WaitBatch(const v1::WaitBatchRequest& request, const Present& present) {
  Lock lock(mutex_);
  const absl::Time deadline = DeadlineOf(request.max_wait(), Now());
  while (true) {
    HONE_ASSIGN_OR_RETURN(v1::WaitBatchResponse response, farm_.WaitBatch(request, Now()));
    if (response.finished_size() > 0 || response.cancelled()) return response;
    if (!Wait(lock, deadline, present)) break;
  }
  if (stopping_) return Stopping();
  return v1::WaitBatchResponse();
}

absl::Status Shell::CompleteJob(const v1::CompleteJobRequest& request) {
  const Lock lock(mutex_);
  const absl::Status status = farm_.CompleteJob(request, Now());
  HONE_RETURN_IF_ERROR(Settle());
  return status;
}

absl::StatusOr<v1::Job> Shell::SubmitJob(const v1::JobSpec& spec) {
  const Lock lock(mutex_);
  auto job = farm_.SubmitJob(spec, Now());
  HONE_RETURN_IF_ERROR(Settle());
  return job;
}

absl::StatusOr<v1::Job> Shell::GetJob(const std::string& job_id) {
  const Lock lock(mutex_);
  return farm_.GetJob(job_id, Now());
}

absl::StatusOr<v1::ListJobsResponse> Shell::ListJobs(const v1::ListJobsRequest& request) {
  const Lock lock(mutex_);
  v1::ListJobsResponse response;
  for (v1::Job& job : farm_.ListJobs(request.limit(), request.only_open(), Now()))
    *response.add_jobs() = std::move(job);
  return response;
}

absl::StatusOr<v1::WatchJobResponse> Shell::WatchJob(const v1::WatchJobRequest& request, const Present& present) {
  Lock lock(mutex_);
  const absl::Time deadline = DeadlineOf(request.max_wait(), Now());
  while (true) {
    HONE_ASSIGN_OR_RETURN(v1::WatchJobResponse response, farm_.WatchJob(request, Now()));
    response.set_trouble(farm_.trouble());
    const bool told = response.events_size() > 0 || JobBook::Ended(response.job());
    if (told || !Wait(lock, deadline, present)) return response;
  }
}

absl::StatusOr<v1::Job> Shell::CancelJob(const std::string& job_id) {
  const Lock lock(mutex_);
  auto job = farm_.CancelJob(job_id, Now());
  HONE_RETURN_IF_ERROR(Settle());
  return job;
}

v1::ListDevicesResponse Shell::ListDevices(const v1::ListDevicesRequest& request) {
  const Lock lock(mutex_);
  v1::ListDevicesResponse response;
  for (v1::Device& device : farm_.ListDevices(request, Now())) *response.add_devices() = std::move(device);
  response.set_trouble(farm_.trouble());
  return response;
}

absl::Status Shell::Drain(const std::string& agent_id, const std::string& reason) {
  if (agent_id.empty()) return absl::InvalidArgumentError("no agent named: `hone devices` lists their names");
  const Lock lock(mutex_);
  HONE_RETURN_IF_ERROR(state_.SaveDrained(agent_id, reason));
  farm_.Drain(agent_id, reason);
  return Settle();
}

absl::Status Shell::Undrain(const std::string& agent_id) {
  const Lock lock(mutex_);
  HONE_RETURN_IF_ERROR(state_.ForgetDrained(agent_id));
  farm_.Undrain(agent_id);
  return Settle();
}

v1::GetFarmResponse Shell::Counters() {
  const Lock lock(mutex_);
  return farm_.Counters(Now());
}

}  // namespace hone::tracker
