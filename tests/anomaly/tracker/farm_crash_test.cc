// A tracker's storing is killed (SIGKILL) at random moments, again and again on the same two databases: everything
// acknowledged stays, nothing is there twice, and both files are sound.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/random.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "tests/anomaly/tracker/session.h"

namespace hone::tracker {
namespace {

// HONE_KILL_ROUNDS: how many kills; the sweep sets it.
int Rounds() {
  const char* rounds = std::getenv("HONE_KILL_ROUNDS");
  return rounds == nullptr ? 30 : std::atoi(rounds);
}

struct Report {
  int step;
  bool results;  // else the changes
};

// In the child: step after step, several at a time, and a report of each half that is on the disk.
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
    farm->commit->Keep({ChangesOfStep(step), {}}, tell(step, false));
    while (open > 8) std::this_thread::yield();
  }
}

void KillOne(const std::filesystem::path& folder, int first, std::chrono::microseconds life, Acknowledged* told) {
  int ends[2];
  HONE_CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  HONE_CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    StoreForEver(folder, first, ends[1]);
  }
  close(ends[1]);
  std::thread killer([&] {
    std::this_thread::sleep_for(life);
    HONE_CHECK(kill(child, SIGKILL) == 0);
  });
  Report report;
  while (read(ends[0], &report, sizeof report) == sizeof report) {
    (report.results ? told->results : told->changes).insert(report.step);
  }
  killer.join();
  int status = 0;
  HONE_CHECK(waitpid(child, &status, 0) == child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with " << WEXITSTATUS(status);
  close(ends[0]);
}

TEST(FarmCrashTest, EverythingAcknowledgedSurvivesAKill) {
  Random random(2025);
  auto folder = std::make_unique<TemporaryFolder>(TemporaryFolder::Create().value());
  Acknowledged acknowledged;
  int total = 0;
  for (int round = 0; round < Rounds(); ++round) {
    if (round % 50 == 49) {  // else checking all of it takes ever longer
      total += static_cast<int>(acknowledged.results.size());
      acknowledged = {};
      folder = std::make_unique<TemporaryFolder>(TemporaryFolder::Create().value());
    }
    // Steps that nobody acknowledged may be there or not; they are not done again.
    const int first = 1'000 * (round % 50);
    KillOne(folder->path(), first, std::chrono::microseconds(5'000 + random.Below(60'000)), &acknowledged);
    // The change of a round's first step speaks of a step before it, which there was not.
    acknowledged.changes.erase(first);
    ExpectStored(folder->path(), acknowledged);
    if (testing::Test::HasFailure()) FAIL() << "in round " << round;
  }
  total += static_cast<int>(acknowledged.results.size());
  EXPECT_GT(total, Rounds()) << "the writers hardly came to write";
}

}  // namespace
}  // namespace hone::tracker
