// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/farm/load_agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/status.h"
#include "tests/farm/builders.h"
#include "transport/transport.h"

namespace hone::farm {

uint64_t Tally::Begin() {
  const std::lock_guard lock(mutex_);
  begun_.push_back(Clock::now());
  return begun_.size() - 1;
}

void Tally::Leased(uint64_t batch) {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  latencies_.push_back(std::chrono::duration<double, std::milli>(now - begun_.at(batch)).count());
}

void Tally::Failed(const grpc::Status& status) {
  ++failed_;
  const std::lock_guard lock(mutex_);
  last_failure_ = status.error_message();
}

void Tally::Reset() {
  const std::lock_guard lock(mutex_);
  latencies_.clear();
  acknowledged_ = failed_ = 0;
}

std::string Tally::last_failure() {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

std::vector<double> Tally::TakeLatencies() {
  const std::lock_guard lock(mutex_);
  std::sort(latencies_.begin(), latencies_.end());
  return std::exchange(latencies_, {});
}

struct LoadAgents::Agent {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::AgentService::Stub> stub;
  std::unique_ptr<grpc::ClientContext> context;
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
  bool registered = false;
};

LoadAgents::LoadAgents(const Entrance& entrance, int agents, Tally* tally) : tally_(tally) {
  for (int i = 0; i < agents; ++i) {
    agents_.push_back(std::make_unique<Agent>());
    Agent& agent = *agents_.back();
    agent.channel = entrance.Open(Role::kAgent, fmt::format("load{}", i));
    agent.stub = v1::AgentService::NewStub(agent.channel);
    agent.request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    agent.request.set_agent_id(fmt::format("load{}", i));
    agent.request.set_boot_id("boot");
    agent.request.mutable_max_wait()->set_seconds(20);
    *agent.request.add_devices() = tracker::DeviceOf();
    ++open_;
    Call(agent);
    // Agents connect in groups of 50, because a farm's agents do not all connect at the same moment.
    while (i + 1 - registered_ > 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

LoadAgents::~LoadAgents() {
  stopping_ = true;
  for (const auto& agent : agents_) agent->context->TryCancel();
  while (open_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void LoadAgents::Call(Agent& agent) {
  agent.context = std::make_unique<grpc::ClientContext>();
  agent.context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
  agent.request.set_sequence(agent.request.sequence() + 1);
  agent.response.Clear();
  agent.stub->async()->Synchronize(agent.context.get(), &agent.request, &agent.response,
                                   [this, &agent](const grpc::Status& status) { Answered(agent, status); });
}

void LoadAgents::Answered(Agent& agent, const grpc::Status& status) {
  if (stopping_) {
    --open_;
    return;
  }
  if (!status.ok()) {
    tally_->Failed(status);
    Call(agent);
    return;
  }
  if (!std::exchange(agent.registered, true)) ++registered_;
  agent.request.set_epoch(agent.response.epoch());
  for (const std::string& id : agent.response.acked_lease_ids()) {
    auto* finished = agent.request.mutable_finished();
    for (int i = 0; i < finished->size(); ++i) {
      if (finished->Get(i).lease().lease_id() != id) continue;
      tally_->Acknowledged(finished->Get(i).result().outcomes_size());
      finished->DeleteSubrange(i--, 1);
    }
  }
  for (const v1::Lease& lease : agent.response.leases()) {
    tally_->Leased(lease.batch().search_seed());
    v1::LeaseResult* finished = agent.request.add_finished();
    *finished->mutable_lease() = lease.reference();
    *finished->mutable_result() = tracker::TimedResult(lease.batch());
  }
  Call(agent);
}

}  // namespace hone::farm
