// SPDX-License-Identifier: Apache-2.0
// The tracker's machine: the real shell, state and store on a simulated disk. It can be started, stopped and killed.
// Line models the network between the tracker and one program.
#ifndef HONE_TESTS_SIMULATION_TRACKER_MACHINE_H_
#define HONE_TESTS_SIMULATION_TRACKER_MACHINE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/world.h"
#include "tracker/shell.h"

namespace hone::simulation {

// The network between one program and the tracker.
struct Line {
  bool cut = false;       // no message arrives, in either direction
  double lose = 0;        // chance that a message is lost
  double twice = 0;       // chance that a request arrives a second time, late
  double slowest = 0.01;  // longest delay of a message, in seconds
};

class TrackerMachine {
 public:
  // folder: real folder of this machine, for lock files.
  TrackerMachine(World* world, Disk* disk, Checker* checker, tracker::FarmOptions options, std::string folder);

  void Start();               // repeats until it succeeds
  void Kill(bool power_cut);  // may be called at any moment; the machine starts again soon
  void StopAndStart();        // an orderly restart, as for an update
  void StopForGood();         // returns when the tracker has ended
  // Kills the tracker in the middle of the n-th disk operation from this call on.
  void KillAtOperation(int n, bool power_cut);
  // From this call on each disk operation fails with this chance and SQLite error code; chance 0 ends that.
  void SetDisk(double chance, int code);
  Process& process() { return *machine_; }
  bool up() const { return running_ != nullptr; }
  void Look(const std::function<void(const tracker::Farm&, absl::Time)>& look);
  std::unique_ptr<records::Store> OpenStore();  // only after StopForGood
  std::string farm_id;
  int starts() const { return starts_; }

  // Makes a call over `line` from a fiber, which waits for the answer. begin: passes the request to the shell.
  template <typename Request, typename Response>
  using Begin = std::function<void(tracker::Shell&, const Request&, tracker::Present, tracker::Done<Response>)>;
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(const Line& line, const Request& request, absl::Duration deadline,
                                const std::stop_token& stop, Begin<Request, Response> begin);

 private:
  struct Run {
    std::shared_ptr<Process> process;
    std::string folder;
    std::unique_ptr<records::Store> store;
    std::unique_ptr<tracker::Shell> shell;
    const void* mutex = nullptr;
    bool stopping = false;
    int inside = 0;                                  // calls that are inside a method of the shell
    std::map<int64_t, std::function<void()>> calls;  // open calls; each function ends one if the tracker dies
  };
  absl::Status Open(Run& run);
  std::shared_ptr<Run> Leave(bool power_cut);
  void Bury(const std::shared_ptr<Run>& run);
  void StartLater();
  std::string NewFolder();

  World* const world_;
  Disk* const disk_;
  Checker* const checker_;
  const tracker::FarmOptions options_;
  const std::string folder_;
  std::shared_ptr<Process> machine_;  // process of the machine; the next start replaces it
  std::shared_ptr<Run> running_;
  std::string disk_folder_;
  double failure_chance_ = 0;
  int failure_code_ = SQLITE_FULL;
  int starts_ = 0, folders_ = 0;
  int64_t next_call_ = 0;
  bool over_ = false, starting_ = false;
};

template <typename Request, typename Response>
absl::StatusOr<Response> TrackerMachine::Call(const Line& line, const Request& request, absl::Duration deadline,
                                              const std::stop_token& stop, Begin<Request, Response> begin) {
  struct State {
    Request request;
    std::optional<absl::StatusOr<Response>> answer;
    bool left = false;
  };
  const auto state = std::make_shared<State>(State{request, std::nullopt, false});
  const auto comes_through = [this, &line] { return !line.cut && !world_->Chance(line.lose); };
  const Line* const by = &line;
  // Sends the answer back over the line.
  const auto answer = [this, state, by, comes_through](absl::StatusOr<Response> response) {
    if (!comes_through()) return;
    world_->Spawn(
        machine_,
        [this, state, by, response = std::move(response)] {
          if (by->cut || state->left || state->answer.has_value()) return;
          state->answer = response;
          world_->Broadcast(state.get());
        },
        world_->Between(0, by->slowest));
  };
  const auto arrive = [this, state, answer, begin] {
    const std::shared_ptr<Run> run = running_;
    if (run == nullptr) return answer(absl::UnavailableError("connection refused"));
    const int64_t number = ++next_call_;
    run->calls[number] = [answer] { answer(absl::UnavailableError("connection reset")); };
    world_->Spawn(run->process, [run, state, answer, begin, number] {
      if (run->process->dead || run->shell == nullptr) return;
      ++run->inside;
      begin(
          *run->shell, state->request, [state] { return !state->left; },
          [run, answer, number](absl::StatusOr<Response> response) {
            run->calls.erase(number);
            if (!run->process->dead) answer(std::move(response));
          });
      --run->inside;
    });
  };
  const absl::Duration until = world_->now() + deadline;
  if (comes_through()) world_->Spawn(machine_, arrive, world_->Between(0, line.slowest));
  if (world_->Chance(line.twice)) world_->Spawn(machine_, arrive, world_->Between(0, 40));
  {
    const std::stop_callback on_stop(stop, [this, state] { world_->Broadcast(state.get()); });
    while (!state->answer.has_value() && !stop.stop_requested() && world_->now() < until) {
      world_->Wait(state.get(), until);
    }
  }
  state->left = true;
  if (state->answer.has_value()) return *std::move(state->answer);
  if (stop.stop_requested()) return absl::CancelledError("ended by the caller");
  return absl::DeadlineExceededError("no answer in time");
}

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_TRACKER_MACHINE_H_
