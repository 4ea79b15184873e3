// SPDX-License-Identifier: Apache-2.0
// Group commit: writes many callers' results and changes in one transaction. What arrives during a commit goes into the
// next one. Each commit costs one sync of the disk for the records, and one for the state of the farm.
//
// Results and changes of the farm have different promises. An agent keeps its results until they are accepted, so if a
// commit fails, its results are dropped here and the caller is told. Changes of the farm have happened already, so if a
// commit fails, they stay, go into the next one, and are tried again twice a second until the disk takes them. Safe
// from any thread. Not here: what a change means. Start at Append and AddChanges.
#ifndef HONE_TRACKER_GROUP_COMMIT_H_
#define HONE_TRACKER_GROUP_COMMIT_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "records/store.h"
#include "tracker/farm_state.h"
#include "tracker/queue/histogram.h"
#include "tracker/storage_health.h"

namespace hone::tracker {

class GroupCommit {
 public:
  // The store must outlive it.
  GroupCommit(FarmState state, records::Store* store);
  ~GroupCommit();  // after one last commit of what is there; everyone is told

  // Called once, on the thread of this class, which it must not hold up; it may call Append and AddChanges.
  using Told = std::function<void(const absl::Status&)>;

  // told: OK when the commit is on the disk. A row that the store rejects is logged and dropped; told is OK then,
  // too.
  void Append(std::vector<records::Record> rows, Told told);

  struct Changes {
    StateChanges state;
    std::vector<records::Record> rows;
    bool empty() const { return state.empty() && rows.empty(); }
  };
  // told: whether everything that was given to AddChanges until now is on the disk. With no changes, it only asks that.
  // After an error the changes are tried again, but told is not called again.
  void AddChanges(Changes changes, Told told);

  // Whether something that was given to AddChanges is not on the disk yet.
  bool HasPendingChanges() const;
  // Why nothing can be stored now; "" when it can (storage_health.h).
  std::string FailureReason() const;
  Histogram Times() const;  // seconds that commits took

 private:
  struct Group {
    std::vector<records::Record> results;
    std::vector<Told> results_told;
    Changes kept;
    std::vector<Told> kept_told;
    bool empty() const { return results_told.empty() && kept_told.empty(); }
  };
  void Loop();
  absl::Status AppendRows(const Group& group);
  void Commit(Group group);
  void Note(StorageHealth::What what, const absl::Status& stored);

  FarmState state_;  // of the thread alone
  records::Store* const store_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  Group next_;
  bool stopping_ = false;
  bool writing_changes_ = false;  // a commit with changes is on its way
  StorageHealth storage_health_;
  Histogram times_ = CommitTimeBuckets();
  std::thread thread_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_GROUP_COMMIT_H_
