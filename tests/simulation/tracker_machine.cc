// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/tracker_machine.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/status.h"
#include "storage/open.h"

namespace hone::simulation {

TrackerMachine::TrackerMachine(World* world, Disk* disk, Checker* checker, tracker::FarmOptions options,
                               std::string folder)
    : world_(world),
      disk_(disk),
      checker_(checker),
      options_(options),
      folder_(std::move(folder)),
      machine_(std::make_shared<Process>(Process{.name = "tracker"})) {
  machine_->steady = world->Between(0, 1e6);
  disk_folder_ = NewFolder();
}

std::string TrackerMachine::NewFolder() {
  std::string folder = fmt::format("{}/tracker{}", folder_, ++folders_);
  std::filesystem::create_directories(folder);
  return folder;
}

absl::Status TrackerMachine::Open(Run& run) {
  HONE_ASSIGN_OR_RETURN(run.store, storage::OpenRecords(run.folder + "/records.db", records::OpenMode::kReadWrite));
  // absl::Now counts the processor's cycles between two looks at the clock, so it would pass on real time.
  const auto wall = [this] { return absl::UnixEpoch() + world_->WallNow(); };
  HONE_ASSIGN_OR_RETURN(tracker::FarmState state, tracker::FarmState::Open(run.folder + "/state", wall()));
  farm_id = state.farm_id();
  checker_->TrackerStarts();
  HONE_ASSIGN_OR_RETURN(run.shell, tracker::Shell::Start(options_, std::move(state), run.store.get(), {.wall = wall}));
  return absl::OkStatus();
}

void TrackerMachine::Start() {
  if (over_ || running_ != nullptr || std::exchange(starting_, true)) return;
  world_->Spawn(machine_, [this] {
    auto run = std::make_shared<Run>();
    run->process = world_->process();
    run->folder = disk_folder_;
    const absl::Status opened = Open(*run);
    starting_ = false;
    if (!opened.ok()) {
      world_->Note("the tracker does not start: " + opened.ToString());
      run->shell = nullptr;
      run->store = nullptr;
      return StartLater();
    }
    ++starts_;
    world_->Note(fmt::format("the tracker starts, the {}. time", starts_));
    const auto look = [this, raw = run->shell.get(), process = run->process] {
      if (process->dead) return;
      raw->WithFarm([this](const tracker::Farm& farm, absl::Time now) { checker_->Look(farm, now); });
    };
    run->mutex = world_->MutexTakenBy(look);
    world_->OnMutexReleased(run->mutex, look);
    running_ = run;
  });
}

void TrackerMachine::StartLater() {
  world_->Spawn(machine_, [this] { Start(); }, world_->Between(0.5, 10));
}

// Cuts the running tracker off: its answers go nowhere, and its disk is copied as it is. The next start uses the copy.
std::shared_ptr<TrackerMachine::Run> TrackerMachine::Leave(bool power_cut) {
  std::shared_ptr<Run> run = std::exchange(running_, nullptr);
  run->process->dead = true;
  world_->ForgetMutex(run->mutex);
  disk_folder_ = NewFolder();
  power_cut ? disk_->CopyAfterPowerCut(run->folder, disk_folder_) : disk_->CopyAfterKill(run->folder, disk_folder_);
  machine_ = std::make_shared<Process>(*run->process);
  machine_->dead = false;
  machine_->stopped_until = absl::ZeroDuration();
  disk_->failures(run->folder) = {};
  SetDisk(failure_chance_, failure_code_);
  for (auto& [number, end] : std::exchange(run->calls, {})) end();
  return run;
}

void TrackerMachine::Bury(const std::shared_ptr<Run>& run) {
  while (run->inside > 0) world_->Sleep(absl::Milliseconds(10));
  run->shell = nullptr;
  run->store = nullptr;
  disk_->Remove(run->folder);
}

void TrackerMachine::Kill(bool power_cut) {
  if (running_ == nullptr) return;
  world_->Note(power_cut ? "the tracker loses power" : "the tracker is killed");
  const std::shared_ptr<Run> run = Leave(power_cut);
  run->process->late = 0;
  world_->Spawn(run->process, [this, run] { Bury(run); });
  StartLater();
}

void TrackerMachine::KillAtOperation(int n, bool power_cut) {
  DiskFailures& failures = disk_->failures(disk_folder_);
  failures.until_strike = n;
  failures.strike = [this, power_cut] { Kill(power_cut); };
}

void TrackerMachine::SetDisk(double chance, int code) {
  failure_chance_ = chance;
  failure_code_ = code;
  DiskFailures& failures = disk_->failures(disk_folder_);
  failures.chance = chance;
  failures.code = code;
}

void TrackerMachine::StopAndStart() {
  const std::shared_ptr<Run> run = running_;
  if (run == nullptr || std::exchange(run->stopping, true)) return;
  world_->Note("the tracker is stopped");
  world_->Spawn(run->process, [this, run] {
    run->shell->Stop();
    if (run->process->dead) return;  // killed meanwhile
    running_ = nullptr;
    starting_ = true;
    world_->ForgetMutex(run->mutex);
    while (run->inside > 0) world_->Sleep(absl::Milliseconds(10));
    run->shell = nullptr;
    run->store = nullptr;
    for (auto& [number, end] : std::exchange(run->calls, {})) end();
    starting_ = false;
    if (!over_) StartLater();
  });
}

void TrackerMachine::StopForGood() {
  over_ = true;
  while (starting_) world_->Sleep(absl::Milliseconds(100));
  StopAndStart();
  while (running_ != nullptr || starting_) world_->Sleep(absl::Milliseconds(100));
}

void TrackerMachine::Look(const std::function<void(const tracker::Farm&, absl::Time)>& look) {
  const std::shared_ptr<Run> run = running_;
  if (run == nullptr) return;
  world_->Do(run->process, [run, &look] { run->shell->WithFarm(look); });  // reads the clock of the tracker's process
}

std::unique_ptr<records::Store> TrackerMachine::OpenStore() {
  absl::StatusOr<std::unique_ptr<records::Store>> store =
      storage::OpenRecords(disk_folder_ + "/records.db", records::OpenMode::kReadWrite);
  if (store.ok()) return *std::move(store);
  world_->Violate("the records cannot be opened: " + store.status().ToString());
  return nullptr;
}

}  // namespace hone::simulation
