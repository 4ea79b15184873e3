// SPDX-License-Identifier: Apache-2.0
// A process that stores for a tracker is killed (SIGKILL) at random moments, many times on the same two databases.
// Everything acknowledged must stay, nothing may be there twice, and both files must be sound.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/random.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "tests/anomaly/records/killed_writer.h"
#include "tests/anomaly/tracker/session.h"

namespace hone::tracker {
namespace {

// Number of kills; the sweep sets HONE_KILL_ROUNDS.
int Rounds() {
  const char* rounds = std::getenv("HONE_KILL_ROUNDS");
  return rounds == nullptr ? 30 : std::atoi(rounds);
}

struct Report {
  int step;
  bool results;  // true: of its results; false: of its changes
};

// Runs in the child: stores step after step, several at a time, and reports each half of a step that is on disk.
[[noreturn]] void StoreForEver(const std::filesystem::path& folder, int first, int pipe) {
  auto farm = OpenFarm::Open(folder);
  if (!farm.ok()) _exit(2);
  std::atomic<int> open = 0;
  const auto tell = [&](int step, bool results) {
    return [&open, step, results, pipe](const absl::Status& status) {
      const Report report{step, results};
      if (!status.ok() || write(pipe, &report, sizeof report) != sizeof report) _exit(3);
      --open;
    };
  };
  for (int step = first;; ++step) {
    open += 2;
    farm->commit->Append(RowsOfStep(step), tell(step, true));
    farm->commit->AddChanges({ChangesOfStep(step), {}}, tell(step, false));
    while (open > 8) std::this_thread::yield();
  }
}

TEST(FarmCrashTest, EverythingAcknowledgedSurvivesAKill) {
  Random random(2025);
  auto folder = std::make_unique<TemporaryFolder>(TemporaryFolder::Create().value());
  Acknowledged acknowledged;
  int total = 0;
  for (int round = 0; round < Rounds(); ++round) {
    if (round % 50 == 49) {  // start new files, because checking them all takes longer every round
      total += static_cast<int>(acknowledged.results.size());
      acknowledged = {};
      folder = std::make_unique<TemporaryFolder>(TemporaryFolder::Create().value());
    }
    // Unacknowledged steps may or may not be there; no round repeats them.
    const int first = 1'000 * (round % 50);
    KillWriter<Report>([&](int pipe) { StoreForEver(folder->path(), first, pipe); },
                       round % 2 == 0 ? LifeFrom::kStart : LifeFrom::kFirstReport,
                       std::chrono::microseconds(5'000 + random.Below(60'000)),
                       [&](const Report& report) {
                         (report.results ? acknowledged.results : acknowledged.changes).insert(report.step);
                       });
    // A round's first step also ends the job of the step before it, which does not exist.
    acknowledged.changes.erase(first);
    ExpectStored(folder->path(), acknowledged);
    if (testing::Test::HasFailure()) FAIL() << "in round " << round;
  }
  total += static_cast<int>(acknowledged.results.size());
  EXPECT_GT(total, Rounds()) << "the writers hardly came to write";
}

}  // namespace
}  // namespace hone::tracker
