// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/agent_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/identity.h"

namespace hone::simulation {
namespace {

namespace fs = std::filesystem;

bool Has(const v1::Batch& batch, const char* what) {
  return std::any_of(batch.candidates().begin(), batch.candidates().end(),
                     [&](const v1::Candidate& candidate) { return candidate.id().ends_with(what); });
}

v1::DeviceState StateOf(const MadeUpDevice& device) {
  v1::DeviceState state;
  state.set_device_id(device.id);
  state.set_target("cpu");
  state.set_threads(4);
  (*state.mutable_labels())["kind"] = device.kind;
  state.mutable_fingerprint()->set_architecture("x86_64");
  state.mutable_fingerprint()->set_text("x86_64 " + device.kind);
  state.mutable_fingerprint()->set_digest(device.kind);
  state.mutable_self_test()->set_passed(true);
  return state;
}

}  // namespace

AgentMachine::AgentMachine(World* world, TrackerMachine* tracker, Checker* checker, std::string id, std::string folder,
                           std::vector<MadeUpDevice> devices)
    : world_(world),
      tracker_(tracker),
      checker_(checker),
      id_(std::move(id)),
      folder_(std::move(folder)),
      devices_(std::move(devices)),
      machine_(std::make_shared<Process>(Process{.name = id_})) {
  machine_->steady = world->Between(0, 1e6);
  NewOutbox();
}

void AgentMachine::NewOutbox() {
  outbox_ = fmt::format("{}/{}-{}", folder_, id_, ++folders_);
  fs::create_directories(outbox_);
}

int AgentMachine::Waiting() const {
  return static_cast<int>(std::distance(fs::directory_iterator(outbox_), fs::directory_iterator()));
}

bool AgentMachine::Work(absl::Duration duration, const std::stop_token& stop) {
  const absl::Duration until = world_->now() + duration;
  int key = 0;
  const std::stop_callback on_stop(stop, [this, &key] { world_->Broadcast(&key); });
  while (!stop.stop_requested() && world_->now() < until) world_->Wait(&key, until);
  if (!stop.stop_requested()) return true;
  world_->Sleep(world_->Between(0, 0.3));  // a child takes a while to die
  return false;
}

v1::BatchResult AgentMachine::Outcomes(MadeUpDevice& device, const v1::Batch& batch,
                                       const std::shared_ptr<Process>& process) {
  v1::BatchResult result;
  for (const v1::Candidate& candidate : batch.candidates()) {
    if (candidate.id().ends_with(kKills)) {
      if (!process->dead) Kill();
      return {};
    }
    v1::CandidateOutcome& outcome = *result.add_outcomes();
    outcome.set_candidate_id(candidate.id());
    if (candidate.id().ends_with(kFails)) {
      outcome.mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_CRASHED);
      outcome.mutable_outcome()->mutable_failure()->set_text("signal 11");
      continue;
    }
    v1::Timing& timing = *outcome.mutable_outcome()->mutable_timing();
    timing.add_seconds(checker_->NewTime(candidate.id()));
    timing.set_calls_per_repeat(1);
    if (device.hot) timing.set_temperature_c(95);
  }
  return result;
}

v1::BatchResult AgentMachine::Measure(MadeUpDevice& device, const std::shared_ptr<Process>& process,
                                      const v1::Batch& batch, const std::stop_token& stop) {
  const std::string name = id_ + "/" + device.id;
  v1::BatchResult result;
  if (process->dead || stop.stop_requested()) {
    result.set_error("ended");
    return result;
  }
  checker_->Begins(name, batch);
  const bool hangs = std::exchange(device.hangs, false);
  const bool done = Work(hangs ? absl::Hours(2) : world_->Between(0.05, 2) * device.slowness, stop);
  if (process->dead) {  // a dead process has no effect on the outside
    result.set_error("ended");
    return result;
  }
  checker_->Ends(name, batch);
  if (!done) {
    result.set_error("ended");
  } else if (device.sick || Has(batch, kPoison)) {
    result.set_error(device.sick ? "the device is broken" : "the artifact does not load");
  } else {
    result = Outcomes(device, batch, process);
    if (result.outcomes().empty()) result.set_error("ended");
  }
  return result;
}

v1::GoldenCheck AgentMachine::Golden(const MadeUpDevice& device, uint64_t number, const std::stop_token& stop) {
  v1::GoldenCheck check;
  check.set_number(number);
  check.set_passed(Work(world_->Between(0.05, 0.2), stop) && !device.sick);
  check.set_kernel("golden");
  if (!check.passed()) check.set_reason("wrong output");
  check.set_median_seconds(100e-6 * (1 + 0.05 * world_->random().Uniform()) * device.slowness);
  check.set_temperature_c(device.hot ? 95 : 50);
  return check;
}

agent::ServedDevice AgentMachine::Served(MadeUpDevice& device, const std::shared_ptr<Process>& process) {
  agent::ServedDevice served;
  served.state = StateOf(device);
  served.measure = [this, &device, process](const v1::Batch& batch, const std::stop_token& stop) {
    return Measure(device, process, batch, stop);
  };
  served.check = {[state = served.state] { return state.self_test(); }, absl::Minutes(2)};
  if (!device.has_golden) return served;
  served.golden = {
      [this, &device](uint64_t number, const std::stop_token& stop) { return Golden(device, number, stop); },
      absl::Seconds(20)};
  return served;
}

// Runs one agent process from start to end.
void AgentMachine::RunLoop() {
  const std::shared_ptr<Process> process = world_->process();
  absl::StatusOr<agent::Outbox> outbox = agent::Outbox::Open(outbox_);
  if (!outbox.ok()) return world_->Violate("no outbox: " + outbox.status().ToString());
  std::vector<agent::ServedDevice> served;
  for (MadeUpDevice& device : devices_) served.push_back(Served(device, process));
  const auto synchronize = [this, process](const v1::SynchronizeRequest& request,
                                           const std::stop_token& stop) -> absl::StatusOr<v1::SynchronizeResponse> {
    if (process->dead) return absl::CancelledError("dead");
    const absl::Duration deadline = absl::Seconds(request.max_wait().seconds() + (request.leaving() ? 2 : 15));
    return tracker_->Call<v1::SynchronizeRequest, v1::SynchronizeResponse>(
        line, request, deadline, stop,
        [this](tracker::Shell& shell, const v1::SynchronizeRequest& arrived, tracker::Present present,
               tracker::Done<v1::SynchronizeResponse> done) {
          checker_->ResultsReported(arrived);
          shell.Synchronize(arrived, std::move(present),
                            [this, &arrived, done = std::move(done)](absl::StatusOr<v1::SynchronizeResponse> response) {
                              if (response.ok() && !world_->process()->dead) checker_->Answered(arrived, *response);
                              done(std::move(response));
                            });
        });
  };
  agent::SyncLoop loop({id_, RandomId(), "1"}, synchronize, std::move(served), *std::move(outbox));
  loop_ = &loop;
  if (ends_now_) loop.Stop();
  const absl::Status end = loop.Run();
  if (!process->dead) {
    loop_ = nullptr;
    world_->Note("the agent ends: " + end.ToString());
  }
}

void AgentMachine::Start() {
  if (over_ || loop_ != nullptr) return;
  ++alive_;
  ends_now_ = false;
  world_->Spawn(machine_, [this] {
    world_->Note("the agent starts");
    RunLoop();
    --alive_;
    if (world_->process()->dead) return;
    machine_ = std::make_shared<Process>(*machine_);
    if (!over_) world_->Spawn(machine_, [this] { Start(); }, world_->Between(0.5, 5));
  });
}

void AgentMachine::Kill() {
  if (loop_ == nullptr) return;
  world_->Note(id_ + " is killed");
  const std::shared_ptr<Process> dead = machine_;
  dead->dead = true;
  checker_->AgentDied(id_);
  agent::SyncLoop* const loop = std::exchange(loop_, nullptr);
  const std::string old = outbox_;
  NewOutbox();
  fs::copy(old, outbox_, fs::copy_options::recursive);
  machine_ = std::make_shared<Process>(*dead);
  machine_->dead = false;
  // The loop is on the stack of its fiber and lives until its Run returns, which Stop brings about.
  loop->Stop();
  world_->Spawn(machine_, [this] { Start(); }, world_->Between(0.5, 30));
}

void AgentMachine::StopAndStart() {
  if (loop_ == nullptr) return;
  world_->Note(id_ + " is stopped");
  loop_->Stop();
}

void AgentMachine::StopForGood() {
  over_ = true;
  ends_now_ = true;
  if (loop_ != nullptr) loop_->Stop();
  while (alive_ > 0) {
    world_->Sleep(absl::Milliseconds(100));
    if (loop_ != nullptr) loop_->Stop();
  }
}

}  // namespace hone::simulation
