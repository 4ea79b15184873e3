// SPDX-License-Identifier: Apache-2.0
// Each disk operation of a tracker's two databases fails once, in turn. Acknowledged data must be there. Job changes
// that could not be stored are stored later; results that could not be stored are refused. Also checks that syncs are
// few.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <thread>

#include "base/temporary_folder.h"
#include "storage/open.h"
#include "tests/anomaly/records/fault_vfs.h"
#include "tests/anomaly/tracker/session.h"

namespace hone::tracker {
namespace {

using records::Fault;
using records::FaultVfs;

constexpr int kSteps = 4;

// Two starts of a tracker with two steps each. A failed start ends the session, unless the fault passes; then the start
// is repeated. Refused results are sent again, as agents do.
Acknowledged RunSession(const std::filesystem::path& folder, bool passing) {
  Acknowledged acknowledged;
  for (int start = 0; start < 2; ++start) {
    auto farm = OpenFarm::Open(folder);
    if (!farm.ok() && passing) farm = OpenFarm::Open(folder);
    if (!farm.ok()) {
      EXPECT_FALSE(passing) << farm.status();
      return acknowledged;
    }
    for (int step = start * 2; step < start * 2 + 2; ++step) {
      auto [results, changes] = RunStep(*farm->commit, step);
      if (passing && !results.ok()) {
        std::promise<absl::Status> again;
        farm->commit->Append(RowsOfStep(step), [&](const absl::Status& status) { again.set_value(status); });
        results = again.get_future().get();
        EXPECT_EQ(results, absl::OkStatus());
      }
      if (passing && !changes.ok()) {  // the commit repeats failed changes by itself; wait for that
        std::promise<absl::Status> asked;
        farm->commit->AddChanges({}, [&](const absl::Status& status) { asked.set_value(status); });
        changes = asked.get_future().get();
        EXPECT_EQ(changes, absl::OkStatus());
      }
      if (results.ok()) acknowledged.results.insert(step);
      if (changes.ok()) acknowledged.changes.insert(step);
    }
  }
  return acknowledged;
}

class FarmFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FarmFaultTest, NoSingleFaultLosesWhatWasAcknowledged) {
  const bool power_cut = GetParam() == Fault::kPowerCut;
  bool hit = true;
  int n = 0;
  for (n = 1; hit; ++n) {
    const TemporaryFolder folder = TemporaryFolder::Create().value();
    Acknowledged acknowledged;
    {
      FaultVfs vfs;
      vfs.Arm(GetParam(), n);
      acknowledged = RunSession(folder.path(), !power_cut);
      hit = vfs.hit();
      if (power_cut && hit) vfs.LosePower(static_cast<uint64_t>(n));
    }
    ExpectStored(folder.path(), acknowledged);
    if (!power_cut) {
      EXPECT_EQ(acknowledged.changes.size(), static_cast<size_t>(kSteps));
      EXPECT_EQ(acknowledged.results.size(), static_cast<size_t>(kSteps));
    }
    if (testing::Test::HasFailure()) FAIL() << "at fault " << n;
  }
  const bool rare = GetParam() == Fault::kTruncateError || GetParam() == Fault::kDeleteError;
  EXPECT_GT(n, rare ? 1 : 20) << "the disk saw too little";
}

INSTANTIATE_TEST_SUITE_P(AllFaults, FarmFaultTest,
                         testing::Values(Fault::kWriteError, Fault::kShortWrite, Fault::kSyncError,
                                         Fault::kTruncateError, Fault::kDeleteError, Fault::kDiskFull,
                                         Fault::kPowerCut));

// While the disk is full, results are refused and changes wait. Once there is room, the changes are stored without
// another call.
TEST(GroupCommitTest, ChangesWaitForRoomAndResultsAreRefused) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  Acknowledged acknowledged;
  {
    FaultVfs vfs;
    auto farm = OpenFarm::Open(folder.path());
    ASSERT_TRUE(farm.ok());
    for (int step = 0; step < 2; ++step) {
      vfs.Arm(Fault::kDiskFull, 1);
      std::promise<absl::Status> results;
      farm->commit->Append(RowsOfStep(step), [&](const absl::Status& status) { results.set_value(status); });
      EXPECT_TRUE(absl::IsResourceExhausted(results.get_future().get()));
      EXPECT_THAT(farm->commit->FailureReason(), testing::HasSubstr("no space left"));
      vfs.Arm(Fault::kDiskFull, 1);
      std::promise<absl::Status> changes;
      farm->commit->AddChanges({ChangesOfStep(step), {}},
                               [&](const absl::Status& status) { changes.set_value(status); });
      EXPECT_TRUE(absl::IsResourceExhausted(changes.get_future().get()));
      acknowledged.changes.insert(step);  // it will be stored later
    }
    while (farm->commit->HasPendingChanges()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ExpectStored(folder.path(), acknowledged);
  EXPECT_EQ(storage::OpenRecords(folder / "records.db", records::OpenMode::kReadOnly).value()->Summarize()->records, 0);
}

// Calls that arrive during a commit share the next one.
TEST(GroupCommitTest, ManyShareOneSync) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  FaultVfs vfs;
  auto farm = OpenFarm::Open(folder.path());
  ASSERT_TRUE(farm.ok());
  constexpr int kMany = 50;
  std::promise<void> begun, go_on;
  farm->commit->Append({}, [&](const absl::Status&) {  // blocks the committing thread, as a slow disk does
    begun.set_value();
    go_on.get_future().wait();
  });
  begun.get_future().wait();
  std::vector<std::promise<absl::Status>> told(2 * kMany);
  const auto tell = [&told](int i) { return [&told, i](const absl::Status& status) { told[i].set_value(status); }; };
  for (int step = 0; step < kMany; ++step) {
    farm->commit->Append(RowsOfStep(step), tell(2 * step));
    farm->commit->AddChanges({ChangesOfStep(step), {}}, tell(2 * step + 1));
  }
  const int before = vfs.syncs();
  go_on.set_value();
  for (std::promise<absl::Status>& each : told) EXPECT_EQ(each.get_future().get(), absl::OkStatus());
  EXPECT_LE(vfs.syncs() - before, 8) << "a sync of each log, and what a checkpoint takes";
}

}  // namespace
}  // namespace hone::tracker
