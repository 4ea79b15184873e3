// SPDX-License-Identifier: Apache-2.0
// hone-fake-board: an agent whose device computes nothing. Its conversation with the tracker and its outbox are real.
// Its times depend only on the schedule, so that two runs of a job measure the same.
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/cpu_features.h"
#include "base/digest.h"
#include "base/identity.h"
#include "base/status.h"
#include "device_agent/agent/call_tracker.h"
#include "device_agent/agent/sync_loop.h"
#include "pki/farm_link.h"
#include "pki/identity_folder.h"

namespace hone::chaos {
namespace {

constexpr uint64_t kOneInSoManyFails = 16;

v1::Outcome OutcomeOf(const v1::Batch& batch, const v1::Candidate& candidate) {
  const uint64_t number = std::stoull(Sha256Hex(batch.workload() + candidate.schedule()).substr(0, 15), nullptr, 16);
  v1::Outcome outcome;
  if (!candidate.is_default() && number % kOneInSoManyFails == 0) {
    outcome.mutable_failure()->set_kind(v1::FAILURE_KIND_CRASHED);
    outcome.mutable_failure()->set_text("signal 11");
    return outcome;
  }
  v1::Timing& timing = *outcome.mutable_timing();
  for (int repeat = 0; repeat < 5; ++repeat) timing.add_seconds(1e-4 + 1e-7 * static_cast<double>(number % 1000));
  timing.set_calls_per_repeat(1);
  timing.set_reference_seconds(1e-5);
  timing.set_max_error(0);
  return outcome;
}

// pace: time for each candidate.
v1::BatchResult Measure(const v1::Batch& batch, std::chrono::duration<double> pace, const std::stop_token& stop) {
  v1::BatchResult result;
  std::mutex mutex;
  std::condition_variable_any stopped;
  for (const v1::Candidate& candidate : batch.candidates()) {
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, pace, [] { return false; });
    if (stop.stop_requested()) {
      result.Clear();
      result.set_error("cancelled");
      return result;
    }
    v1::CandidateOutcome& outcome = *result.add_outcomes();
    outcome.set_candidate_id(candidate.id());
    *outcome.mutable_outcome() = OutcomeOf(batch, candidate);
  }
  result.set_visit_seconds(pace.count() * batch.candidates_size());
  return result;
}

agent::ServedDevice Board(std::chrono::duration<double> pace) {
  agent::ServedDevice board;
  v1::DeviceState& state = board.state;
  state.set_device_id("cpu");
  state.set_threads(4);
  v1::DeviceFingerprint& fingerprint = *state.mutable_fingerprint();
  fingerprint.set_architecture("x86_64");
  fingerprint.set_cpu_model("fake");
  for (const X86Feature& feature : kX86Features) fingerprint.add_cpu_features(std::string(feature.cpuinfo));
  fingerprint.set_text("x86_64 fake");
  fingerprint.set_digest(Sha256Hex(fingerprint.text()));
  state.mutable_self_test()->set_passed(true);
  board.measure = [pace](const v1::Batch& batch, const std::stop_token& stop) { return Measure(batch, pace, stop); };
  board.check.run = [test = state.self_test()] { return test; };
  board.golden.run = [](uint64_t number, const std::stop_token&) {
    v1::GoldenCheck check;
    check.set_number(number);
    check.set_passed(true);
    check.set_kernel("fake");
    check.set_median_seconds(1e-3);
    check.set_mad_seconds(1e-5);
    return check;
  };
  return board;
}

absl::Status RunBoard(const std::string& tracker, const std::string& folder, std::chrono::duration<double> pace,
                      const sigset_t& signals) {
  HONE_ASSIGN_OR_RETURN(const std::string name, pki::ReadName(folder, Role::kAgent));
  HONE_ASSIGN_OR_RETURN(const auto link, pki::FarmLink::Open(tracker, folder));
  HONE_ASSIGN_OR_RETURN(agent::Outbox outbox, agent::Outbox::Open(std::filesystem::path(folder) / "outbox"));
  const auto synchronize = [&](const v1::SynchronizeRequest& request, const std::stop_token& stop) {
    return agent::CallTracker(*link, request, stop);
  };
  std::vector<agent::ServedDevice> devices;
  devices.push_back(Board(pace));
  agent::SyncLoop loop({name, RandomId(), "fake"}, synchronize, std::move(devices), std::move(outbox));
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    loop.Stop();
  });
  const absl::Status status = loop.Run();
  pthread_kill(stopper.native_handle(), SIGTERM);
  stopper.join();
  return status;
}

}  // namespace
}  // namespace hone::chaos

int main(int argc, char** argv) {
  std::string tracker, folder;
  double pace = 0.02;
  CLI::App app("An agent with a device that computes nothing.", "hone-fake-board");
  app.add_option("--tracker", tracker, "HOST:PORT")->required();
  app.add_option("--identity", folder, "folder with its certificate")->required();
  app.add_option("--pace", pace, "seconds for each candidate")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const absl::Status status = hone::chaos::RunBoard(tracker, folder, std::chrono::duration<double>(pace), signals);
  if (!status.ok()) std::fprintf(stderr, "hone-fake-board: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
