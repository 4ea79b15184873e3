// SPDX-License-Identifier: Apache-2.0
// Copies of a tracker's databases, made while it runs, and put back while it does not.
//
// A copy is a folder with one file of each database: records.db, state.db and, of a tracker on HOST:PORT, register.db
// and audit.db. Keys and certificates are not in it: docs/howto/back-up-a-tracker.md says what to keep of them. Making
// one only reads, from a process of its own; each file is as of one moment, complete and checked, and the records as of
// a later one than the state. Start at MakeBackup.
#ifndef HONE_TRACKER_BACKUP_H_
#define HONE_TRACKER_BACKUP_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::tracker {

struct TrackerFiles {
  std::filesystem::path records, state;
  std::filesystem::path certificates;  // the folder of --pki; empty: none
};

// Makes the folder `to`, which must not be there, with the copy in it; whatever ends it early leaves no such folder.
// kAlreadyExists; kNotFound: there are no such databases; else as Store's errors.
absl::Status MakeBackup(const TrackerFiles& files, const std::filesystem::path& to);

// Puts what the folder has in place of the databases. What was there stays beside it as FILE.replaced-N, and is named
// in `replaced`. No token of the copy is good: which were spent or revoked since, it does not know. Killed at any
// moment, on a file system with hard links, it leaves every database whole, as it was or as in the copy, and is to be
// repeated. kFailedPrecondition: one of them is in use, or the folder's are not ours, or newer; nothing was changed.
// kDataLoss: the copy is damaged; nothing was changed.
absl::Status RestoreBackup(const std::filesystem::path& from, const TrackerFiles& files,
                           std::vector<std::filesystem::path>* replaced);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_BACKUP_H_
