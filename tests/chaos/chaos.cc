// SPDX-License-Identifier: Apache-2.0
// hone-farm-chaos: a farm of real processes tunes jobs while its members are killed, stopped and restarted, the network
// fails and the disk is full. Then it tunes the same jobs undisturbed. Both runs must try the same number of schedules
// for each key.
//
// Needs root, for a network and a disk of its own. Prints JSON. Exit code 1: something was lost, was counted twice, or
// did not end by itself.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "tests/chaos/disturbances.h"
#include "tests/chaos/farm.h"

namespace hone::chaos {
namespace {

using Clock = Disturbances::Clock;
using nlohmann::json;

struct Options {
  FarmSize size;
  double seconds = 600, patience = 900;
  uint64_t seed = 1;
  std::string folder;
};

struct Ended {
  bool all = false, clean = false;
  double seconds = 0;
  std::map<RecordKey, Recorded> records;
  std::map<std::string, int> disturbances;
  std::vector<std::string> jobs;   // jobs that did not succeed, with the reason
  std::vector<std::string> twice;  // jobs that counted results twice, with the number

  bool Well() const { return all && clean && jobs.empty() && twice.empty(); }
};

bool Open(const v1::Job& job) { return job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_RUNNING; }

std::vector<std::string> NotSucceeded(const std::vector<v1::Job>& jobs) {
  std::vector<std::string> others;
  for (const v1::Job& job : jobs) {
    if (job.state() == v1::JOB_STATE_SUCCEEDED) continue;
    others.push_back(job.spec().name() + ": " + v1::JobState_Name(job.state()) + " " + job.error() + job.waiting_for());
  }
  return others;
}

// Every trial has a different schedule and is recorded. A job may report fewer trials than that, if its tuner was
// killed before it reported.
std::vector<std::string> CountedTwice(const std::vector<v1::Job>& jobs, const std::map<RecordKey, Recorded>& records) {
  std::vector<std::string> twice;
  for (const v1::Job& job : jobs) {
    std::set<std::string> schedules;
    for (const auto& [key, of_key] : records) {
      if (std::get<0>(key) != job.spec().workloads(0).digest()) continue;
      schedules.insert(of_key.schedules.begin(), of_key.schedules.end());
    }
    const int64_t trials = job.progress().trials(), recorded = std::ssize(schedules);
    if (trials > recorded) twice.push_back(fmt::format("{}: {}", job.spec().name(), trials - recorded));
  }
  return twice;
}

// Runs the farm until all jobs have ended.
Ended Play(const Options& options, const std::filesystem::path& folder, bool disturbed) {
  std::filesystem::create_directories(folder / "disk");
  HONE_CHECK(mount("tmpfs", (folder / "disk").c_str(), "tmpfs", 0, "size=200m") == 0);
  Ended ended;
  {
    Farm farm(folder, options.size);
    farm.SubmitJobs();
    Disturbances disturbances(&farm, folder / "disk", options.seed);
    const Clock::time_point begun = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
    bool calm = !disturbed;
    std::vector<v1::Job> jobs;
    while (!ended.all && passed() < options.seconds + options.patience) {
      if (!calm && passed() < options.seconds) disturbances.Tick(Clock::now());
      if (!calm && passed() >= options.seconds) {
        spdlog::info("no more disturbances");
        disturbances.EndAll();
        calm = true;
      }
      jobs = farm.Jobs();
      ended.all = static_cast<int>(jobs.size()) == options.size.jobs && std::none_of(jobs.begin(), jobs.end(), Open);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ended.seconds = passed();
    disturbances.EndAll();
    ended.disturbances = disturbances.counts();
    std::this_thread::sleep_for(std::chrono::seconds(20));  // boards deliver the results that they still keep
    ended.clean = farm.Stop();
    ended.records = farm.Records();
    ended.jobs = NotSucceeded(jobs);
    ended.twice = CountedTwice(jobs, ended.records);
    std::error_code ignored;  // the disk is unmounted below; the copy is for debugging
    std::filesystem::copy_file(folder / "disk" / "records.db", folder / "records.db", ignored);
  }
  umount2((folder / "disk").c_str(), MNT_DETACH);
  return ended;
}

json ToJson(const Ended& ended) {
  json records = json::array(), schedules = json::array();
  for (const auto& [key, of_key] : ended.records) {
    records.push_back(of_key.records);
    schedules.push_back(of_key.schedules.size());
  }
  return {
      {"all_ended", ended.all},           {"processes_ended_well", ended.clean}, {"seconds", ended.seconds},
      {"records_of_each_key", records},   {"schedules_of_each_key", schedules},  {"disturbances", ended.disturbances},
      {"jobs_not_succeeded", ended.jobs}, {"results_counted_twice", ended.twice}};
}

int Run(const Options& options) {
  if (!EnterOwnWorld()) {
    std::fputs("hone-farm-chaos: needs a network of its own; run it as root\n", stderr);
    return 2;
  }
  TemporaryFolder temporary = TemporaryFolder::Create().value();
  const std::filesystem::path folder = options.folder.empty() ? temporary.path().string() : options.folder;
  const Ended disturbed = Play(options, folder / "disturbed", true);
  const Ended calm = Play(options, folder / "calm", false);
  const bool same =
      std::equal(disturbed.records.begin(), disturbed.records.end(), calm.records.begin(), calm.records.end(),
                 [](const auto& one, const auto& other) {
                   return one.first == other.first && one.second.schedules.size() == other.second.schedules.size();
                 });
  const json result = {{"disturbed", ToJson(disturbed)}, {"calm", ToJson(calm)}, {"same_trials", same}};
  std::puts(result.dump(2).c_str());
  return disturbed.Well() && calm.Well() && same ? 0 : 1;
}

}  // namespace
}  // namespace hone::chaos

int main(int argc, char** argv) {
  hone::chaos::Options options;
  options.size.trials = 2000;
  CLI::App app("A farm of real processes under disturbances, beside the same undisturbed.", "hone-farm-chaos");
  app.add_option("--seconds", options.seconds, "of disturbances")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds after them until all jobs must have ended")
      ->capture_default_str();
  app.add_option("--boards", options.size.boards)->capture_default_str();
  app.add_option("--tuners", options.size.tuners)->capture_default_str();
  app.add_option("--jobs", options.size.jobs)->capture_default_str();
  app.add_option("--trials", options.size.trials, "of each job")->capture_default_str();
  app.add_option("--pace", options.size.pace, "seconds that a board takes for each candidate")->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--folder", options.folder, "for logs and records, which stay there (default: one that is removed)");
  CLI11_PARSE(app, argc, argv);
  return hone::chaos::Run(options);
}
