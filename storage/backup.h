// SPDX-License-Identifier: Apache-2.0
// Backs up a tracker's SQLite files while it runs, and restores them while it does not.
//
// A backup is a folder with records.db and state.db, and with register.db and audit.db if the tracker has a folder of
// certificates. Keys and certificates are not in it: docs/howto/back-up-a-tracker.md says which to keep. Making a
// backup only reads the files, from a process of its own. Each copy shows one moment, is complete and was checked. The
// records are copied after the state, so they have the results of every job that has ended in it. Start at MakeBackup.
#ifndef HONE_STORAGE_BACKUP_H_
#define HONE_STORAGE_BACKUP_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::storage {

struct TrackerFiles {
  std::filesystem::path records, state;
  std::filesystem::path certificates;  // the folder of --pki; empty: none
};

// Makes the folder `to`, which must not exist, with the backup in it. The folder appears only when the backup is
// complete. kAlreadyExists: `to` exists. kNotFound: a database is missing. Other errors as records/store.h lists them.
absl::Status MakeBackup(const TrackerFiles& files, const std::filesystem::path& to);

// Replaces the databases with those of the backup. Each replaced file stays as FILE.replaced-N, and `replaced` gets its
// name. All tokens of the restored register are revoked, because some may have been spent or revoked since the backup.
// On a file system with hard links, a restore that is killed leaves each database whole, either old or restored; run it
// again. kFailedPrecondition: a database is in use, or the backup is of another program or a newer Hone. kDataLoss: the
// backup is damaged. On both errors nothing was changed.
absl::Status RestoreBackup(const std::filesystem::path& from, const TrackerFiles& files,
                           std::vector<std::filesystem::path>* replaced);

}  // namespace hone::storage

#endif  // HONE_STORAGE_BACKUP_H_
