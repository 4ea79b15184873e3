// SPDX-License-Identifier: Apache-2.0
// A farm of real processes in a network of its own: a tracker over TLS, tuners, boards, and jobs; and what is left of
// it.
#ifndef HONE_TESTS_CHAOS_FARM_H_
#define HONE_TESTS_CHAOS_FARM_H_

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "hone/v1/job.pb.h"
#include "tests/farm/processes.h"
#include "transport/transport.h"

namespace hone::chaos {

// What a farm consists of, and how to start it again.
class Member {
 public:
  Member(std::string name, std::vector<std::string> arguments, std::filesystem::path log)
      : name_(std::move(name)), arguments_(std::move(arguments)), log_(std::move(log)) {}
  const std::string& name() const { return name_; }
  void Start() { process_ = std::make_unique<farm::Process>(arguments_, log_); }
  void Signal(int signal) const { process_->Signal(signal); }
  int Wait() { return process_->Wait(); }
  bool Running() { return process_->Running(); }

 private:
  std::string name_;
  std::vector<std::string> arguments_;
  std::filesystem::path log_;
  std::unique_ptr<farm::Process> process_;
};

struct FarmSize {
  int boards = 20, tuners = 2, jobs = 3;
  int64_t trials = 0;  // of each job
  double pace = 0.02;  // seconds that a board takes for a candidate
};

// Workload, target, device and compiler.
using RecordKey = std::tuple<std::string, std::string, std::string, std::string>;
// Of one key. A schedule that runs along with others, or is confirmed, has several records; how many depends on how
// trials fall into batches.
struct Recorded {
  int64_t records = 0;
  std::set<std::string> schedules;
};

class Farm {
 public:
  // Everything lies in `folder`; the tracker's records and state in its `disk`, which may be a mount.
  Farm(const std::filesystem::path& folder, const FarmSize& size);

  std::vector<Member>& members() { return members_; }  // the tracker first
  void SubmitJobs();
  // Empty while the tracker does not answer.
  std::vector<v1::Job> Jobs();
  // Ends all processes, the tracker last; true where all ended by themselves when asked.
  bool Stop();
  // After Stop. Aborts where the file is damaged.
  std::map<RecordKey, Recorded> Records() const;

 private:
  void MakeIdentities();

  const std::filesystem::path folder_;
  const FarmSize size_;
  std::string address_;
  std::vector<Member> members_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Leaves the network of the machine for an empty one with a loopback, and its mounts for a copy of them; false where
// the system does not allow it.
bool EnterOwnWorld();
void SetLoopback(bool up);

}  // namespace hone::chaos

#endif  // HONE_TESTS_CHAOS_FARM_H_
