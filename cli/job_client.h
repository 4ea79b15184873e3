// What `tune`, `submit` and `watch` share: a job made of a model, and a job watched to its end.
#ifndef HONE_CLI_JOB_CLIENT_H_
#define HONE_CLI_JOB_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/model_options.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/job.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// How long to search, and what.
struct SearchOptions {
  int64_t trials = 0;  // 0: no limit
  std::string time;    // "10m"; empty: no limit
  std::string until;   // "07:00" (until.h); empty: no such time
  uint64_t seed = 1;
  int priority = 0;
  std::string space = "all";         // or "template", "sketch"
  std::vector<std::string> devices;  // names, and labels as NAME=VALUE
  bool HasEnd() const { return trials > 0 || !time.empty() || !until.empty(); }
  void AddTo(CLI::App* command);
};

// Imports the model: every distinct workload with its count.
absl::StatusOr<v1::JobSpec> MakeJobSpec(const ModelOptions& model, const SearchOptions& search);

// Movable; used by one thread at a time.
class JobClient {
 public:
  JobClient(std::shared_ptr<grpc::Channel> channel, std::string address)
      : jobs_(v1::JobService::NewStub(channel)), address_(std::move(address)) {}

  absl::StatusOr<v1::Job> Submit(const v1::JobSpec& spec);
  absl::StatusOr<v1::Job> Cancel(const std::string& job_id);
  absl::StatusOr<std::vector<v1::Job>> List(bool only_open);
  // Follows the job until it has ended. `heard` is called about every second and `idle` as often, also while there is
  // no connection; either may end the watching with an error. Errors of the connection are waited out until then.
  absl::StatusOr<v1::Job> Watch(const std::string& job_id,
                                const std::function<absl::Status(const v1::WatchJobResponse&)>& heard,
                                const std::function<absl::Status()>& idle);

 private:
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::string address_;
};

// One line on standard error: rewritten in place on a terminal, a line every ten seconds elsewhere.
class ProgressLine {
 public:
  ProgressLine();
  void Show(const v1::WatchJobResponse& heard);
  void Finish();

 private:
  const bool terminal_;
  absl::Time next_ = absl::InfinitePast();
  size_t width_ = 0;
};

std::string StateName(v1::JobState state);  // "running"
// The document of `hone tune --json` (design contract): times are sums over the model's kernels.
nlohmann::ordered_json JobToJson(const v1::Job& job);
// The same for people.
std::string JobToText(const v1::Job& job);

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_CLIENT_H_
