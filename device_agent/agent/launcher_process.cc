// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/launcher_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/control_groups.h"
#include "base/short_environment.h"
#include "base/status.h"
#include "device_agent/devices/device_convert.h"
#include "device_agent/launcher/launcher_channel.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/visit/package_task.h"
#include "device_agent/visit/pass_files.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

constexpr int64_t kTasksMax = 4096;  // of a launcher: a thread pool for each process that builds or measures
constexpr std::chrono::seconds kCancelPatience(10);         // with a launcher that is to end its visit
constexpr std::chrono::milliseconds kBetweenReadings(500);  // of sensors
// The same in long runs of packages, also where reading takes time from them: a reading takes far less than a
// millisecond.
constexpr std::chrono::seconds kBetweenReadingsOfRun(10);
constexpr double kSecondsOfMinute = 60;

// What drivers, and fake drivers of tests, need besides kPlainVariables. A kernel can read the environment.
constexpr std::string_view kDriverVariables[] = {"CUDA_", "NVIDIA_",  "OCL_",      "OPENCL_", "POCL_",
                                                 "MESA_", "RUSTICL_", "HSA_",      "ROC_",    "GPU_",
                                                 "IGC_",  "NEO_",     "HONE_FAKE_"};
// Turns off the cache of small freed blocks, which M_PERTURB would not overwrite ("Memory Allocation Tunables" of
// glibc).
constexpr char kKeepsNoBlocks[] = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";

// Shuts the socket down after kCancelPatience. For a launcher that does not end its visit, because it was stopped or
// waits for a child that hangs in a driver. False: the visit ended before, as `over` tells.
bool ShutDownAfterTimeout(int socket, const std::stop_token& over) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, over, kCancelPatience, [] { return false; });
  if (over.stop_requested()) return false;
  shutdown(socket, SHUT_RDWR);
  return true;
}

// Calls `work` at once and then periodically until a stop of `over` is requested.
void Repeat(const std::stop_token& over, std::chrono::milliseconds period, const std::function<void()>& work) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  while (!over.stop_requested()) {
    work();
    std::condition_variable_any().wait_for(lock, over, period, [] { return false; });
  }
}

void AddSensors(const Sensors& sensors, v1::BatchResult& result) {
  for (v1::CandidateOutcome& outcome : *result.mutable_outcomes()) {
    if (!outcome.outcome().has_timing()) continue;
    v1::Timing& timing = *outcome.mutable_outcome()->mutable_timing();
    if (sensors.temperature_c) timing.set_temperature_c(*sensors.temperature_c);
    if (sensors.clock_mhz) timing.set_clock_mhz(*sensors.clock_mhz);
  }
}

// The mean power of the visit. board_watts: of the board, 0 if it was not read. Else the power of the CPU packages
// between the first reading and the last.
void AddPower(const std::vector<TimedReading>& readings, double board_watts, v1::RunReport& report) {
  double joules = 0, seconds = 0;
  for (size_t i = 1; i < readings.size(); ++i) {
    const TimedReading &before = readings[i - 1], &after = readings[i];
    // A counter that has started again says nothing of this interval.
    if (!before.sensors.joules || !after.sensors.joules || *after.sensors.joules < *before.sensors.joules) continue;
    joules += *after.sensors.joules - *before.sensors.joules;
    seconds += after.at - before.at;
  }
  if (board_watts > 0) {
    report.set_power_watts(board_watts);
    report.set_power_source("board");
  } else if (seconds > 0 && joules > 0) {
    report.set_power_watts(joules / seconds);
    report.set_power_source("cpu package");
  }
}

// Adds the readings to a report that has just arrived. The measurement is the last thing that a run does, so the ends
// of its minutes are counted from now.
void AddSensors(const std::vector<TimedReading>& readings, double board_watts, const v1::RunTask& task,
                v1::RunReport& report) {
  if (readings.empty()) return;
  AddPower(readings, board_watts, report);
  const Sensors &before = readings.front().sensors, &after = readings.back().sensors;
  if (before.temperature_c) report.set_temperature_before_c(*before.temperature_c);
  if (before.clock_mhz) report.set_clock_before_mhz(*before.clock_mhz);
  if (after.temperature_c) report.set_temperature_after_c(*after.temperature_c);
  if (after.clock_mhz) report.set_clock_after_mhz(*after.clock_mhz);
  const double end = SecondsNow(), begin = end - task.seconds() * task.packages_size();
  for (v1::PackageReport& package : *report.mutable_packages()) {
    for (int i = 0; i < package.minutes_size(); ++i) {
      const double ends = begin + kSecondsOfMinute * (i + 1);
      const auto later = std::ranges::find_if(readings, [&](const TimedReading& one) { return one.at > ends; });
      if (later == readings.begin()) continue;
      v1::RunMinute& minute = *package.mutable_minutes(i);
      const Sensors& reading = std::prev(later)->sensors;
      if (reading.temperature_c) minute.set_temperature_c(*reading.temperature_c);
      if (reading.clock_mhz) minute.set_clock_mhz(*reading.clock_mhz);
    }
  }
}

// The error if a child of the launcher could write to one of the files, or if they are too many to send.
absl::Status CheckFiles(const std::vector<int>& files) {
  if (files.size() > kFilesMax) {
    return absl::InvalidArgumentError(fmt::format("a run has {} files at most, not {}", kFilesMax, files.size()));
  }
  for (const int file : files) {
    const int flags = fcntl(file, F_GETFL), seals = fcntl(file, F_GET_SEALS);
    const bool is_sealed = seals >= 0 && (seals & F_SEAL_WRITE) != 0;
    if (flags >= 0 && ((flags & O_ACCMODE) == O_RDONLY || is_sealed)) continue;
    return absl::InvalidArgumentError("a file of the run is not open, or open for writing");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> MakeLauncherFolder(const TemporaryFolder& parent) {
  const std::string folder = parent / "driver";
  if (chmod(parent.path().c_str(), 0711) == 0 && mkdir(folder.c_str(), 0700) == 0) return folder;
  return absl::UnavailableError(fmt::format("cannot make {}: {}", folder, std::strerror(errno)));
}

Launcher::~Launcher() { Stop(); }

void Launcher::Stop() {
  if (pid_ < 0) return;
  close(channel_);
  for (const int end : cancel_) close(end);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  group_ = absl::CancelledError("over");  // and with it whatever is left of the launcher's
}

void Launcher::MakeGroup() {
  if (options_.groups == nullptr) return;
  if (!options_.groups->ok()) {
    group_ = options_.groups->status();
    return;
  }
  // An eighth is for the caches of the launcher; the rest is for kernels that compile in parallel, or for one that
  // runs.
  const GroupLimits limits{.memory_bytes = UsableMemory() / 8 * 5, .tasks = kTasksMax};
  std::string name = options_.device;
  std::replace(name.begin(), name.end(), '/', '_');
  group_ = (*options_.groups)->Make(name, limits);
}

SandboxLayer Launcher::GroupLayer() const {
  SandboxLayer layer{Layer::kControlGroup, group_.ok() && group_->HasProcesses(), ""};
  if (!group_.ok()) {
    layer.detail = std::string(group_.status().message());
  } else if (!layer.holds) {
    layer.detail = "the launcher could not enter its control group";
  } else if (!group_->failed_limits().empty()) {
    layer.detail = "no limit for " + group_->failed_limits();
  }
  return layer;
}

absl::Status Launcher::Start() {
  std::array<int, 2> sockets, pipes;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return absl::UnavailableError(fmt::format("cannot make a socket for the launcher: {}", std::strerror(errno)));
  }
  if (pipe2(pipes.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    close(sockets[0]);
    close(sockets[1]);
    return absl::UnavailableError(fmt::format("cannot make a pipe for the launcher: {}", std::strerror(errno)));
  }
  const std::string channel = fmt::format("--launcher-channel={}", sockets[1]),
                    cancel = fmt::format("--launcher-cancel={}", pipes[0]);
  const std::string device = fmt::format("--device={}", options_.device),
                    folder = fmt::format("--launcher-folder={}", options_.folder);
  const std::array<const char*, 6> arguments = {"hone-agent",    device.c_str(), folder.c_str(),
                                                channel.c_str(), cancel.c_str(), nullptr};
  std::vector<const char*> environment = ShortEnvironment(kDriverVariables);
  environment.insert(environment.begin(), kKeepsNoBlocks);
  MakeGroup();
  const int entrance = group_.ok() ? group_->OpenProcsFile() : -1;
  const pid_t pid = fork();
  if (pid == 0) {  // only calls that are safe after fork in a process with threads, until exec
    fcntl(sockets[1], F_SETFD, 0);
    fcntl(pipes[0], F_SETFD, 0);
    [[maybe_unused]] const ssize_t entered = entrance < 0 ? 0 : write(entrance, "0", 1);  // GroupLayer sees it
    execve(options_.program.c_str(), const_cast<char* const*>(arguments.data()),
           const_cast<char* const*>(environment.data()));
    _exit(127);
  }
  close(sockets[1]);
  if (entrance >= 0) close(entrance);
  if (pid < 0) {
    for (const int fd : {sockets[0], pipes[0], pipes[1]}) close(fd);
    return absl::UnavailableError(fmt::format("cannot start the launcher: {}", std::strerror(errno)));
  }
  pid_ = pid;
  channel_ = sockets[0];
  cancel_ = pipes;
  if (ReceiveMessage(channel_, &sandbox_)) {
    *sandbox_.add_layers() = ToProto(GroupLayer());
    return absl::OkStatus();
  }
  Stop();
  return absl::UnavailableError("the launcher process ended before it was ready");
}

absl::StatusOr<v1::Sandbox> Launcher::Open() {
  if (pid_ < 0) HONE_RETURN_IF_ERROR(Start());
  return sandbox_;
}

absl::StatusOr<Launcher::RunResult> Launcher::Exchange(const v1::Batch& batch, const std::vector<int>& files,
                                                       const std::stop_token& stop) {
  if (pid_ < 0) HONE_RETURN_IF_ERROR(Start());
  bool answered = false, hung_up = false;
  RunResult run;
  {
    std::jthread patience;  // of somebody once the visit is to end
    const std::stop_callback cancel(stop, [&] {
      HONE_CHECK(write(cancel_[1], "c", 1) == 1);
      patience = std::jthread([&](const std::stop_token& over) { hung_up = ShutDownAfterTimeout(channel_, over); });
    });
    std::jthread reading;
    const bool in_run = batch.has_run() && batch.run().seconds() * batch.run().packages_size() >= kMinuteCurveSeconds;
    const bool reads_power = !readings_.empty() && readings_.front().sensors.watts.has_value();
    const bool often = options_.reads_sensors_in_visits || reads_power;
    if (often || in_run) {
      const std::chrono::milliseconds period = often ? kBetweenReadings : kBetweenReadingsOfRun;
      reading = std::jthread(
          [this, period](const std::stop_token& over) { Repeat(over, period, [&] { CountWatts(ReadSensors()); }); });
    }
    const double peak = options_.peak_gflops ? options_.peak_gflops() : 0;
    answered = SendNumber(channel_, peak) && SendMessage(channel_, batch) &&
               (!batch.has_run() || SendFiles(channel_, files)) && ReceiveMessage(channel_, &run.result) &&
               (!batch.has_run() || ReceiveFiles(channel_, run.outputs));
  }
  if (answered && !hung_up) {
    char byte;
    [[maybe_unused]] const ssize_t emptied = read(cancel_[0], &byte, 1);  // the callback wrote one at most
    return run;
  }
  Stop();
  if (!hung_up) return absl::AbortedError("the launcher process ended during the visit");
  spdlog::warn("the launcher of {} did not end its visit within {} s and was killed", options_.device,
               kCancelPatience.count());
  RunResult cancelled;
  cancelled.result.set_error(kCancelled);
  return cancelled;
}

Sensors Launcher::ReadSensors() {
  if (!options_.sensors) return {};
  const Sensors sensors = options_.sensors();
  AddReading(sensors, sensors_);
  const double now = SecondsNow();
  // The newest reading stands last; those before it are far enough apart for days of them.
  const size_t count = readings_.size();
  if (count > 1 && now - readings_[count - 2].at < std::chrono::duration<double>(kBetweenReadingsOfRun).count()) {
    readings_.pop_back();
  }
  readings_.push_back({now, sensors});
  return sensors;
}

void Launcher::CountWatts(const Sensors& sensors) {
  if (!sensors.watts) return;
  watts_sum_ += *sensors.watts;
  ++watts_count_;
}

Launcher::RunResult Launcher::RunWithFiles(const v1::Batch& batch, const std::vector<int>& files,
                                           const std::stop_token& stop) {
  sensors_ = {};
  readings_.clear();
  watts_sum_ = 0;
  watts_count_ = 0;
  if (batch.has_run()) ReadSensors();
  const absl::Status valid = CheckFiles(files);
  absl::StatusOr<RunResult> run = valid.ok() ? Exchange(batch, files, stop) : valid;
  if (run.ok()) {
    ReadSensors();
    AddSensors(sensors_, run->result);
    if (run->result.has_run()) {
      const double watts = watts_count_ > 0 ? watts_sum_ / watts_count_ : 0;
      AddSensors(readings_, watts, batch.run(), *run->result.mutable_run());
      run->result.mutable_run()->set_throttled(sensors_.slowed_down);
      if (options_.environment) *run->result.mutable_run()->mutable_environment() = options_.environment();
      const Roofline roofline = options_.roofline ? options_.roofline() : Roofline();
      if (!roofline.levels.empty()) *run->result.mutable_run()->mutable_roofline() = ToProto(roofline);
    }
    return *std::move(run);
  }
  spdlog::error("{}", std::string(run.status().message()));
  RunResult failed;
  failed.result.set_error(std::string(run.status().message()));
  return failed;
}

}  // namespace hone::agent
