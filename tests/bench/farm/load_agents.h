// SPDX-License-Identifier: Apache-2.0
// Agents that measure nothing. Each has a connection of its own, as if on another machine, waits for leases, answers
// every lease at once, and records when it came.
#ifndef HONE_TESTS_BENCH_FARM_LOAD_AGENTS_H_
#define HONE_TESTS_BENCH_FARM_LOAD_AGENTS_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hone/v1/agent.grpc.pb.h"
#include "tests/bench/farm/entrance.h"

namespace hone::farm {

using Clock = std::chrono::steady_clock;

// Counts of all agents and tuners. Any thread may call it.
class Tally {
 public:
  // Called when a batch is submitted. Returns the number that travels in the batch.
  uint64_t Begin();
  // An agent received the batch with this number.
  void Leased(uint64_t batch);
  void Acknowledged(int outcomes) { acknowledged_ += outcomes; }
  void Failed(const grpc::Status& status);
  // Discards all counts, so that measuring starts here.
  void Reset();

  int64_t acknowledged() const { return acknowledged_; }
  int64_t failed() const { return failed_; }
  std::string last_failure();
  std::vector<double> TakeLatencies();  // milliseconds from submission to lease, sorted

 private:
  std::atomic<int64_t> acknowledged_ = 0, failed_ = 0;
  std::mutex mutex_;
  std::vector<Clock::time_point> begun_;
  std::vector<double> latencies_;
  std::string last_failure_;
};

class LoadAgents {
 public:
  // `tally` must outlive this object.
  LoadAgents(const Entrance& entrance, int agents, Tally* tally);
  ~LoadAgents();  // ends all calls
  int registered() const { return registered_; }

 private:
  struct Agent;
  void Call(Agent& agent);
  void Answered(Agent& agent, const grpc::Status& status);

  Tally* const tally_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> registered_ = 0, open_ = 0;
  std::vector<std::unique_ptr<Agent>> agents_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_BENCH_FARM_LOAD_AGENTS_H_
