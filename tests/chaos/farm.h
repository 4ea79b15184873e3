// SPDX-License-Identifier: Apache-2.0
// A farm of real processes in a network of its own: a tracker over TLS, tuners, boards and jobs. Also reads the records
// that the farm leaves.
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

// A process of the farm, with the command that starts it again.
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

// How many members and jobs a farm has.
struct FarmSize {
  int boards = 20, tuners = 2, jobs = 3;
  int64_t trials = 0;  // of each job
  double pace = 0.02;  // seconds that a board takes for a candidate
};

// Workload, target, device and compiler.
using RecordKey = std::tuple<std::string, std::string, std::string, std::string>;
// The records of one key. A schedule has several records if it was the incumbent or was confirmed; the number depends
// on how trials fall into batches.
struct Recorded {
  int64_t records = 0;
  std::set<std::string> schedules;
};

class Farm {
 public:
  // All files are in `folder`. The tracker's records and state are in `folder`/disk, which may be a mount.
  Farm(const std::filesystem::path& folder, const FarmSize& size);

  std::vector<Member>& members() { return members_; }  // the tracker is first
  // Submits all jobs, with the same schedules to try in every run.
  void SubmitJobs();
  // Empty while the tracker does not answer.
  std::vector<v1::Job> Jobs();
  // Ends all processes, the tracker last. Returns true if all ended on request.
  bool Stop();
  // Call after Stop. Aborts if the file is damaged.
  std::map<RecordKey, Recorded> Records() const;

 private:
  void MakeIdentities();

  const std::filesystem::path folder_;
  const FarmSize size_;
  std::string address_;
  std::vector<Member> members_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Moves this process into an empty network with a loopback and a private copy of the mounts. Returns false if the
// system does not permit it.
bool EnterOwnWorld();
void SetLoopback(bool up);

}  // namespace hone::chaos

#endif  // HONE_TESTS_CHAOS_FARM_H_
