// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/failure_injector.h"

#include <fmt/format.h>

#include <utility>

namespace hone::simulation {

FailureInjector::FailureInjector(Cast* cast) : cast_(cast), world_(cast->world) {
  AddNetwork();
  AddTracker();
  AddAgents();
  AddDevices();
}

void FailureInjector::Add(const std::string& name, std::function<void()> strike) {
  if (world_->Chance(0.5)) kinds_.emplace_back(name, std::move(strike));
}

AgentMachine& FailureInjector::AnAgent() {
  return *cast_->agents[static_cast<size_t>(world_->random().Below(static_cast<int64_t>(cast_->agents.size())))];
}

TunerMachine& FailureInjector::ATuner() {
  return *cast_->tuners[static_cast<size_t>(world_->random().Below(static_cast<int64_t>(cast_->tuners.size())))];
}

Line& FailureInjector::ALine() {
  const int64_t whose = world_->random().Below(8);
  return whose == 0 ? cast_->people : whose < 3 ? ATuner().line : AnAgent().line;
}

MadeUpDevice& FailureInjector::ADevice() {
  auto& devices = AnAgent().devices();
  return devices[static_cast<size_t>(world_->random().Below(static_cast<int64_t>(devices.size())))];
}

void FailureInjector::Later(double low_seconds, double high_seconds, std::function<void()> action) {
  world_->Spawn(
      operators_,
      [this, action = std::move(action)] {
        if (!repaired_) action();
      },
      world_->Between(low_seconds, high_seconds));
}

void FailureInjector::AddNetwork() {
  Add("a line loses", [this] {
    Line& line = ALine();
    line.lose = 0.5 * world_->random().Uniform();
    Later(1, 60, [&line] { line.lose = 0; });
  });
  Add("a line is slow", [this] {
    Line& line = ALine();
    line.slowest = 20 * world_->random().Uniform();
    Later(1, 60, [&line] { line.slowest = 0.01; });
  });
  Add("a line doubles", [this] {
    Line& line = AnAgent().line;
    line.twice = 0.5;
    Later(1, 60, [&line] { line.twice = 0; });
  });
  Add("a line is cut", [this] {
    Line& line = ALine();
    line.cut = true;
    Later(1, 90, [&line] { line.cut = false; });
  });
}

void FailureInjector::AddTracker() {
  TrackerMachine& tracker = *cast_->tracker;
  Add("the tracker is killed", [&tracker] { tracker.Kill(false); });
  Add("the tracker is killed while it writes",
      [this, &tracker] { tracker.KillAtOperation(1 + static_cast<int>(world_->random().Below(30)), false); });
  Add("the tracker loses power while it writes",
      [this, &tracker] { tracker.KillAtOperation(1 + static_cast<int>(world_->random().Below(30)), true); });
  Add("the tracker is stopped", [&tracker] { tracker.StopAndStart(); });
  Add("the tracker's disk is full", [this, &tracker] {
    tracker.SetDisk(1, SQLITE_FULL);
    Later(0.1, 40, [&tracker] { tracker.SetDisk(0, SQLITE_FULL); });
  });
  Add("the tracker's disk fails now and then", [this, &tracker] {
    const int code = world_->Chance(0.5) ? SQLITE_IOERR_WRITE : SQLITE_IOERR_FSYNC;
    tracker.SetDisk(0.3 * world_->random().Uniform(), code);
    Later(0.1, 40, [&tracker] { tracker.SetDisk(0, SQLITE_FULL); });
  });
  Add("the tracker's threads are late", [this, &tracker] {
    tracker.process().late = 0.01 * world_->random().Uniform();
    tracker.process().latest = world_->Between(0.01, 4);
    Later(1, 60, [&tracker] { tracker.process().late = 0; });
  });
  Add("the tracker stands still",
      [this, &tracker] { tracker.process().stopped_until = world_->now() + world_->Between(3, 90); });
  Add("a clock is set", [this, &tracker] {
    Process& process = world_->Chance(0.5) ? tracker.process() : AnAgent().process();
    process.wall += world_->Between(-7200, 7200);
  });
}

void FailureInjector::AddAgents() {
  Add("an agent is killed", [this] { AnAgent().Kill(); });
  Add("an agent is stopped", [this] { AnAgent().StopAndStart(); });
  Add("an agent's disk is full", [this] {
    AgentMachine& agent = AnAgent();
    agent.process().fsync_fails = true;
    Later(1, 60, [&agent] { agent.process().fsync_fails = false; });
  });
  Add("an agent's threads are late", [this] {
    AgentMachine& agent = AnAgent();
    agent.process().late = 0.05 * world_->random().Uniform();
    agent.process().latest = world_->Between(0.01, 2);
    Later(1, 60, [&agent] { agent.process().late = 0; });
  });
  Add("an agent is drained", [this] { Drain(AnAgent()); });
  Add("a tuner is killed", [this] { ATuner().Kill(); });
}

void FailureInjector::AddDevices() {
  Add("a device is sick", [this] {
    MadeUpDevice& device = ADevice();
    if (!device.has_golden) return;  // nothing would distinguish this from a broken batch, which then fails
    device.sick = true;
    Later(5, 90, [&device] { device.sick = false; });
  });
  Add("a device hangs", [this] { ADevice().hangs = true; });
  Add("a device is hot", [this] {
    MadeUpDevice& device = ADevice();
    device.hot = true;
    Later(5, 60, [&device] { device.hot = false; });
  });
  Add("a device is slow", [this] {
    AgentMachine& agent = AnAgent();
    MadeUpDevice& device = agent.devices().front();
    device.slowness = 3;
    slowed_.insert(agent.id());
    Later(5, 90, [&device] { device.slowness = 1; });
  });
}

void FailureInjector::Drain(AgentMachine& agent) {
  world_->Spawn(operators_, [this, id = agent.id()] {
    if (repaired_ || !drained_.insert(id).second) return;
    const auto answer = cast_->tracker->Call<v1::DrainRequest, v1::DrainResponse>(
        cast_->people, {}, absl::Seconds(20), {},
        [id](tracker::Shell& shell, const v1::DrainRequest&, const tracker::Present&,
             tracker::Done<v1::DrainResponse> done) { shell.Drain(id, "for repair", std::move(done)); });
    if (answer.ok()) {
      world_->Note(id + " is drained");
      cast_->checker->DrainAnswered(id);
    }
    world_->Sleep(world_->Between(1, 60));
    Undrain(id);
    if (answer.ok()) return;
    // A stalled tracker may run an unanswered drain after the undrain. The list of devices shows that.
    drained_.insert(id);
    world_->Sleep(absl::Minutes(10));
    Undrain(id);
  });
}

void FailureInjector::Undrain(const std::string& agent_id) {
  for (int tries = 0; tries < 100; ++tries) {
    const auto answer = cast_->tracker->Call<v1::UndrainRequest, v1::UndrainResponse>(
        cast_->people, {}, absl::Seconds(20), {},
        [this, agent_id](tracker::Shell& shell, const v1::UndrainRequest&, const tracker::Present&,
                         tracker::Done<v1::UndrainResponse> done) {
          cast_->checker->UndrainBegins(agent_id);
          shell.Undrain(agent_id, std::move(done));
          cast_->checker->UndrainEnds(agent_id);
        });
    if (answer.ok()) break;
    world_->Sleep(world_->Between(1, 5));
  }
  drained_.erase(agent_id);
}

void FailureInjector::InjectFailure() {
  if (kinds_.empty()) return;
  const auto& [name, strike] = kinds_[static_cast<size_t>(world_->random().Below(static_cast<int64_t>(kinds_.size())))];
  world_->Note(name);
  strike();
}

void FailureInjector::RepairAll() {
  repaired_ = true;
  cast_->people = {};
  // Only an operator can confirm that the changed speed of a device is right.
  for (const std::string& id : slowed_) {
    if (drained_.insert(id).second) world_->Spawn(operators_, [this, id] { Undrain(id); }, absl::Minutes(1));
  }
  cast_->tracker->SetDisk(0, SQLITE_FULL);
  cast_->tracker->process().late = 0;
  cast_->tracker->process().stopped_until = absl::ZeroDuration();
  for (const auto& tuner : cast_->tuners) {
    tuner->line = {};
    tuner->gives_back = 0;  // a returned job would include a batch that was forgotten
  }
  for (const auto& agent : cast_->agents) {
    agent->line = {};
    agent->process().late = 0;
    agent->process().fsync_fails = false;
    for (MadeUpDevice& device : agent->devices()) {
      device.sick = device.hangs = device.hot = false;
      device.slowness = 1;
    }
  }
}

}  // namespace hone::simulation
