// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

#include "tests/farm/builders.h"
#include "tests/simulation/failure_injector.h"

namespace hone::simulation {
namespace {

// A candidate that kills its agent costs about ten leases until its batch is given up. If only one device can take it,
// every third lease is followed by a quarantine.
constexpr absl::Duration kRecoveryTimeMax = absl::Hours(6);

// Turns the programs' log lines into notes of the world.
class LogToNotes final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (World* world = World::current(); world != nullptr && world->on_fiber()) {
      if (!world->process()->dead) world->Note(std::string_view(message.payload.data(), message.payload.size()));
    }
  }
  void flush_() override {}
};

// Shorter times than in real farms where a longer one would only add waiting; otherwise the same.
tracker::FarmOptions Options() {
  tracker::FarmOptions options;
  options.devices.first_quarantine = absl::Seconds(60);
  options.devices.quarantine_max = absl::Minutes(4);
  options.devices.first_drift_quarantine = absl::Seconds(30);
  options.devices.cooling_check = absl::Seconds(10);
  options.devices.cooling_max = absl::Seconds(30);
  options.batches.run_limit_min = absl::Seconds(30);
  return options;
}

class Director {
 public:
  Director(World* world, Disk* disk, std::string folder)
      : world_(world),
        checker_(world),
        tracker_(world, disk, &checker_, Options(), folder),
        cast_{world, &tracker_, &checker_, {}, {}, {}},
        failure_injector_(&cast_) {
    workload_.batches = 2 + static_cast<int>(world->random().Below(6));
    workload_.candidates = 1 + static_cast<int>(world->random().Below(6));
    if (world->Chance(0.3)) workload_.kills = 0.02;
    if (world->Chance(0.3)) workload_.fails = 0.1;
    if (world->Chance(0.3)) workload_.poison = 0.1;
    const int agents = 1 + static_cast<int>(world->random().Below(4));
    for (int i = 0; i < agents; ++i) {
      cast_.agents.push_back(std::make_unique<AgentMachine>(world, &tracker_, &checker_, fmt::format("agent{}", i),
                                                            folder, Devices(i == 0)));
      if (world->Chance(0.3)) cast_.agents.back()->process().rate = 1 + 0.002 * (world->random().Uniform() - 0.5);
    }
    const int tuners = 1 + static_cast<int>(world->random().Below(3));
    for (int i = 0; i < tuners; ++i) {
      cast_.tuners.push_back(
          std::make_unique<TunerMachine>(world, &tracker_, &checker_, fmt::format("tuner{}", i), workload_));
    }
  }

  void Direct() {
    tracker_.Start();
    for (const auto& agent : cast_.agents) agent->Start();
    for (const auto& tuner : cast_.tuners) tuner->Start();
    const int jobs = 1 + static_cast<int>(world_->random().Below(4));
    open_ = jobs;
    for (int i = 0; i < jobs; ++i) world_->Spawn(people_, [this, i] { LiveOfAJob(i); }, world_->Between(0, 60));
    const absl::Duration chaos = world_->Between(30, 240), mean = world_->Between(1, 20);
    while (world_->now() < chaos) {
      world_->Sleep(mean * 2 * world_->random().Uniform());
      failure_injector_.InjectFailure();
    }
    world_->Note("everything is mended");
    failure_injector_.RepairAll();
    AwaitTheEnd();
    for (const auto& tuner : cast_.tuners) tuner->StopForGood();
    for (const auto& agent : cast_.agents) agent->StopForGood();
    tracker_.StopForGood();
    if (const auto store = tracker_.OpenStore()) checker_.AtEnd(*store, tracker_.farm_id);
    world_->Sleep(absl::Minutes(5));  // lets repairs that were scheduled for later take place
  }

  Checker& checker() { return checker_; }
  TrackerMachine& tracker() { return tracker_; }

 private:
  std::vector<MadeUpDevice> Devices(bool all_kinds) {
    static constexpr const char* kKinds[] = {"cpu", "gpu"};
    std::vector<MadeUpDevice> devices;
    const int64_t count = all_kinds ? 2 : 1 + world_->random().Below(3);
    for (int64_t i = 0; i < count; ++i) {
      MadeUpDevice device;
      device.id = fmt::format("d{}", i);
      device.kind = kKinds[all_kinds ? i : world_->random().Below(2)];
      device.has_golden = !world_->Chance(0.2);
      devices.push_back(std::move(device));
    }
    return devices;
  }

  template <typename Begin>
  absl::StatusOr<v1::Job> AskForJob(Begin begin) {
    return tracker_.Call<v1::GetJobRequest, v1::Job>(
        cast_.people, {}, absl::Seconds(30), {},
        [begin](tracker::Shell& shell, const v1::GetJobRequest&, const tracker::Present&, tracker::Done<v1::Job> done) {
          begin(shell, std::move(done));
        });
  }

  // Submits a job, reads it from time to time, perhaps cancels it, and returns when it has ended.
  void LiveOfAJob(int number) {
    v1::JobSpec spec = tracker::SpecOf(fmt::format("job{}", number), number % 2);
    spec.set_submitted_by(world_->Chance(0.5) ? "ann" : "bob");
    if (world_->Chance(0.5)) (*spec.mutable_labels())["kind"] = world_->Chance(0.5) ? "cpu" : "gpu";
    absl::StatusOr<v1::Job> job = absl::UnknownError("");
    while (!job.ok()) {
      job = AskForJob([spec](auto& shell, auto done) { shell.SubmitJob(spec, std::move(done)); });
      if (!job.ok()) world_->Sleep(world_->Between(0.5, 5));
    }
    const std::string id = job->id();
    world_->Note("submitted as " + id);
    const absl::Duration cancel = world_->Chance(0.2) ? world_->now() + world_->Between(1, 60) : absl::Hours(100);
    while (true) {
      world_->Sleep(world_->Between(1, 10));
      const absl::Duration asked = world_->now();
      const bool cancels = asked >= cancel;
      job = AskForJob([id, cancels](auto& shell, auto done) {
        if (cancels) {
          shell.CancelJob(id, std::move(done));
        } else {
          shell.GetJob(id, std::move(done));
        }
      });
      // An acknowledged job must be known.
      if (absl::IsNotFound(job.status())) return world_->Violate("a job was lost: " + id);
      if (!job.ok()) continue;
      checker_.JobSeen(*job, asked);
      if (!tracker::JobQueue::Ended(*job)) continue;
      if (cancels && job->state() == v1::JOB_STATE_CANCELLED) checker_.CancelAnswered(id);
      world_->Note(fmt::format("{} has ended: {}", id, v1::JobState_Name(job->state())));
      --open_;
      return;
    }
  }

  // Once failures have stopped, every job ends and every outbox becomes empty within kRecoveryTimeMax.
  void AwaitTheEnd() {
    const absl::Duration until = world_->now() + kRecoveryTimeMax;
    const auto waiting = [this] {
      int results = 0;
      for (const auto& agent : cast_.agents) results += agent->Waiting();
      return results;
    };
    while (open_ > 0 || waiting() > 0 || failure_injector_.operators() > 0) {
      world_->Sleep(absl::Seconds(1));
      if (world_->now() < until) continue;
      tracker_.Look([this](const tracker::Farm& farm, absl::Time now) {
        v1::ListJobsRequest open;
        open.set_only_open(true);
        for (const v1::Job* job : farm.jobs().List(open)) {
          world_->Note(
              fmt::format("{} is open, waiting for '{}'", job->id(), farm.GetJob(job->id(), now)->waiting_for()));
        }
      });
      return world_->Violate(fmt::format("all is well again for {}, and {} jobs are open, {} results wait at agents",
                                         absl::FormatDuration(kRecoveryTimeMax), open_, waiting()));
    }
  }

  World* const world_;
  Checker checker_;
  TrackerMachine tracker_;
  Workload workload_;
  Cast cast_;
  FailureInjector failure_injector_;
  const std::shared_ptr<Process> people_ = std::make_shared<Process>(Process{.name = "people"});
  int open_ = 0;
};

}  // namespace

Verdict Simulate(uint64_t seed, const std::filesystem::path& folder, bool verbose) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", std::make_shared<LogToNotes>()));
  auto world = std::make_unique<World>(seed);
  world->verbose = verbose;
  world->redacted = folder.string();
  auto disk = std::make_unique<Disk>(&world->random());
  auto director = std::make_unique<Director>(world.get(), disk.get(), folder.string());
  world->Spawn(std::make_shared<Process>(Process{.name = "director"}), [raw = director.get()] { raw->Direct(); });
  world->Run();
  Verdict verdict;
  verdict.violation = world->violation();
  verdict.notes = {world->notes().begin(), world->notes().end()};
  verdict.digest = world->digest();
  verdict.steps = world->steps();
  verdict.seconds = absl::ToDoubleSeconds(world->now());
  verdict.leases = director->checker().leases();
  verdict.outcomes = director->checker().told();
  verdict.starts = director->tracker().starts();
  if (!verdict.violation.empty()) (void)director.release();  // fibers that never ended may still refer to the director
  world = nullptr;
  return verdict;
}

}  // namespace hone::simulation
