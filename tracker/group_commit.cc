// SPDX-License-Identifier: Apache-2.0
#include "tracker/group_commit.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "base/steady_time.h"

namespace hone::tracker {
namespace {

constexpr std::chrono::milliseconds kRetryPeriod(500);

template <typename T>
void MoveTo(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

GroupCommit::GroupCommit(FarmState state, records::Store* store)
    : state_(std::move(state)), store_(store), thread_([this] { Loop(); }) {}

GroupCommit::~GroupCommit() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  added_.notify_all();
  thread_.join();
}

void GroupCommit::Append(std::vector<records::Record> rows, Told told) {
  const std::lock_guard lock(mutex_);
  MoveTo(next_.results, std::move(rows));
  next_.results_told.push_back(std::move(told));
  added_.notify_one();
}

void GroupCommit::AddChanges(Changes changes, Told told) {
  const std::lock_guard lock(mutex_);
  next_.kept.state.Add(std::move(changes.state));
  MoveTo(next_.kept.rows, std::move(changes.rows));
  next_.kept_told.push_back(std::move(told));
  added_.notify_one();
}

bool GroupCommit::HasPendingChanges() const {
  const std::lock_guard lock(mutex_);
  return writing_changes_ || !next_.kept.empty();
}

std::string GroupCommit::FailureReason() const {
  const std::lock_guard lock(mutex_);
  return storage_health_.FailureReason(SteadyNow());
}

Histogram GroupCommit::Times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

void GroupCommit::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    // Changes that could not be written wait here too, although no caller waits for them.
    const auto something = [this] { return stopping_ || !next_.empty(); };
    if (next_.kept.empty()) {
      added_.wait(lock, something);
    } else {
      added_.wait_for(lock, kRetryPeriod, something);
    }
    if (stopping_ && next_.empty() && next_.kept.empty()) return;
    const bool last = stopping_;
    Group group = std::exchange(next_, {});
    writing_changes_ = !group.kept.empty();
    lock.unlock();
    Commit(std::move(group));
    lock.lock();
    if (last && next_.empty()) return;
  }
}

absl::Status GroupCommit::AppendRows(const Group& group) {
  if (group.results.empty() && group.kept.rows.empty()) return absl::OkStatus();
  std::vector<records::Record> rows = group.results;
  rows.insert(rows.end(), group.kept.rows.begin(), group.kept.rows.end());
  HONE_ASSIGN_OR_RETURN(const records::AppendReport report, store_->Append(rows));
  for (const records::Rejected& r : report.rejected)
    spdlog::error("a record was rejected: {}", std::string(r.why.message()));
  return absl::OkStatus();
}

// Under the lock.
void GroupCommit::Note(StorageHealth::What what, const absl::Status& stored) {
  const std::string news = storage_health_.Note(what, stored, SteadyNow());
  if (!news.empty()) spdlog::log(stored.ok() ? spdlog::level::info : spdlog::level::err, "{}", news);
}

void GroupCommit::Commit(Group group) {
  const bool writes = !group.results.empty() || !group.kept.empty();
  const absl::Time begun = SteadyNow();
  const absl::Status records = AppendRows(group), state = state_.Save(group.kept.state);
  const absl::Status kept = !group.kept.rows.empty() && !records.ok() ? records : state;
  {
    const std::lock_guard lock(mutex_);
    writing_changes_ = false;
    if (writes) times_.Add(absl::ToDoubleSeconds(SteadyNow() - begun));
    if (!group.results.empty()) Note(StorageHealth::What::kResults, records);
    if (!group.kept.empty()) Note(StorageHealth::What::kState, kept);
    if (!records.ok()) MoveTo(next_.kept.rows, std::move(group.kept.rows));
    if (!state.ok()) {  // what came meanwhile is newer
      group.kept.state.Add(std::exchange(next_.kept.state, {}));
      next_.kept.state = std::move(group.kept.state);
    }
  }
  for (const Told& told : group.results_told) told(records);
  for (const Told& told : group.kept_told) told(kept);
}

}  // namespace hone::tracker
