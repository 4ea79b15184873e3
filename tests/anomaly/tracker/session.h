// SPDX-License-Identifier: Apache-2.0
// A tracker's writes as tests make them: results and job changes, in steps, into both databases. Also the check of what
// must be there afterwards.
#ifndef HONE_TESTS_ANOMALY_TRACKER_SESSION_H_
#define HONE_TESTS_ANOMALY_TRACKER_SESSION_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/open.h"
#include "tests/farm/builders.h"
#include "tests/unit/records/sample_records.h"
#include "tracker/group_commit.h"

namespace hone::tracker {

// The open databases of one tracker.
struct OpenFarm {
  std::unique_ptr<records::Store> store;
  std::unique_ptr<GroupCommit> commit;

  static absl::StatusOr<OpenFarm> Open(const std::filesystem::path& folder) {
    auto store = storage::OpenRecords(folder / "records.db", records::OpenMode::kReadWrite);
    if (!store.ok()) return store.status();
    auto state = FarmState::Open(folder / "state", absl::UnixEpoch());
    if (!state.ok()) return state.status();
    auto commit = std::make_unique<GroupCommit>(*std::move(state), store->get());
    return OpenFarm{*std::move(store), std::move(commit)};
  }
};

inline constexpr int kRowsOfStep = 3;

inline std::vector<records::Record> RowsOfStep(int step) {
  std::vector<records::Record> rows;
  for (int i = 0; i < kRowsOfStep; ++i) {
    rows.push_back(records::SampleTiming(step * kRowsOfStep + i, "s", 1e-3));
    rows.back().decisions = std::string(1500, static_cast<char>('a' + step % 26));  // several database pages
  }
  return rows;
}

// Step n submits job n and ends job n - 1.
inline StateChanges ChangesOfStep(int step) {
  StateChanges changes;
  v1::Job job;
  job.set_id(fmt::format("j{}", step));
  *job.mutable_spec() = SpecOf(std::string(1500, 'x'));
  job.set_state(v1::JOB_STATE_RUNNING);
  changes.jobs[job.id()] = ToStored(job, true);
  if (step == 0) return changes;
  job.set_id(fmt::format("j{}", step - 1));
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  changes.jobs[job.id()] = ToStored(job, false);
  return changes;
}

// Runs a step and waits. Returns whether its results and whether its changes are on the disk.
inline std::pair<absl::Status, absl::Status> RunStep(GroupCommit& commit, int step) {
  std::promise<absl::Status> results, changes;
  commit.Append(RowsOfStep(step), [&](const absl::Status& status) { results.set_value(status); });
  commit.AddChanges({ChangesOfStep(step), {}}, [&](const absl::Status& status) { changes.set_value(status); });
  return {results.get_future().get(), changes.get_future().get()};
}

// Steps that were acknowledged. Both files must be sound and hold all of them, none twice; no step may be there in
// part.
struct Acknowledged {
  std::set<int> results, changes;
};
inline void ExpectStored(const std::filesystem::path& folder, const Acknowledged& acknowledged) {
  {
    const auto store = storage::OpenRecords(folder / "records.db", records::OpenMode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_EQ((*store)->CheckIntegrity(), absl::OkStatus());
    std::set<std::string> ids;
    const auto page = (*store)->Query({.limit = 100'000, .byte_limit = SIZE_MAX});
    ASSERT_TRUE(page.ok()) << page.status();
    for (const records::StoredRecord& row : page->rows) {
      ASSERT_TRUE(ids.insert(row.record.measurement_id).second) << "twice: " << row.record.measurement_id;
    }
    for (const int step : acknowledged.results) {
      for (const records::Record& row : RowsOfStep(step)) {
        ASSERT_TRUE(ids.contains(row.measurement_id)) << "acknowledged and lost: results of step " << step;
      }
    }
    ASSERT_EQ(ids.size() % kRowsOfStep, 0u) << "a step in part";
  }
  auto state = FarmState::Open(folder / "state", absl::UnixEpoch());
  ASSERT_TRUE(state.ok()) << state.status();
  const auto jobs = state->TakeJobs(absl::UnixEpoch());
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::map<std::string, v1::JobState> states;
  for (const v1::Job& job : *jobs) {
    ASSERT_EQ(job.error(), "") << "damaged";
    ASSERT_TRUE(states.emplace(job.id(), job.state()).second) << "twice: " << job.id();
  }
  for (const int step : acknowledged.changes) {
    ASSERT_TRUE(states.contains(fmt::format("j{}", step))) << "acknowledged and lost: changes of step " << step;
    if (step == 0) continue;
    ASSERT_EQ(states[fmt::format("j{}", step - 1)], v1::JOB_STATE_SUCCEEDED) << "lost: changes of step " << step;
  }
}

}  // namespace hone::tracker

#endif  // HONE_TESTS_ANOMALY_TRACKER_SESSION_H_
