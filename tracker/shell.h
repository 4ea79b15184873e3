// The shell around the farm: one mutex, the clock, the stores, and calls that wait. What gRPC's threads call.
//
// Every method is safe from any thread and takes its turn on the farm. Results are appended to the records before the
// agent is told that they were accepted, and jobs are stored before anyone hears of their new state: kill -9 at any
// moment loses nothing that was acknowledged. Waiting calls return early when the shell stops.
#ifndef HONE_TRACKER_SHELL_H_
#define HONE_TRACKER_SHELL_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "records/store.h"
#include "tracker/farm_state.h"
#include "tracker/queue/farm.h"
#include "tracker/storing.h"

namespace hone::tracker {

class Shell {
 public:
  // The store must outlive the shell.
  static absl::StatusOr<std::unique_ptr<Shell>> Start(FarmOptions options, FarmState state, records::Store* store);
  ~Shell();
  // Ends all waiting calls with kUnavailable and lets no new one wait.
  void Stop();

  // Says whether the caller is still there; waiting ends when it is not.
  using Present = std::function<bool()>;

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request, const Present& present);
  absl::StatusOr<v1::LeaseJobResponse> LeaseJob(const v1::LeaseJobRequest& request, const Present& present);
  absl::StatusOr<v1::ReportProgressResponse> ReportProgress(const v1::ReportProgressRequest& request);
  absl::StatusOr<v1::SubmitBatchResponse> SubmitBatch(const v1::SubmitBatchRequest& request);
  absl::StatusOr<v1::WaitBatchResponse> WaitBatch(const v1::WaitBatchRequest& request, const Present& present);
  absl::Status CompleteJob(const v1::CompleteJobRequest& request);
  absl::StatusOr<v1::Job> SubmitJob(const v1::JobSpec& spec);
  absl::StatusOr<v1::Job> GetJob(const std::string& job_id);
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::WatchJobResponse> WatchJob(const v1::WatchJobRequest& request, const Present& present);
  absl::StatusOr<v1::Job> CancelJob(const std::string& job_id);
  v1::ListDevicesResponse ListDevices(const v1::ListDevicesRequest& request);
  absl::Status Drain(const std::string& agent_id, const std::string& reason);
  absl::Status Undrain(const std::string& agent_id);
  v1::GetFarmResponse Counters();
  records::Store* store() { return store_; }

 private:
  Shell(FarmOptions options, FarmState state, records::Store* store);
  using Lock = std::unique_lock<std::mutex>;
  void TickLoop();
  // What has to be on the disk after a change, then everyone who waits looks again.
  absl::Status Settle();
  absl::Status StoreJobs();
  absl::Status StoreHealth();
  // A clock that no step of the system's clock moves: leases must not end because somebody set the time.
  absl::Time Now() const;
  // Makes the request's results durable; what could not be stored stays with the agent.
  void StoreResults(v1::SynchronizeRequest* request);
  void NoteStored(Storing::What what, const absl::Status& stored);
  absl::Status Append(const std::vector<Recordable>& recordables);
  // Waits for a change until the deadline. False when time is up or the caller is gone.
  bool Wait(Lock& lock, absl::Time deadline, const Present& present);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable stopped_;  // for the ticker alone
  bool stopping_ = false;
  const absl::Time started_ = absl::Now();
  const std::chrono::steady_clock::time_point started_steady_ = std::chrono::steady_clock::now();
  std::vector<Recordable> unstored_;  // given up, and not yet in the records
  // Nothing is lost while storing fails: agents keep their results and the farm its changes, and both try again.
  Storing storing_;
  Farm farm_;
  FarmState state_;
  records::Store* const store_;
  std::thread ticker_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_SHELL_H_
