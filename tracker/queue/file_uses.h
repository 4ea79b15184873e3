// SPDX-License-Identifier: Apache-2.0
// An index of files: which open jobs, or which open batches, name a file (hone/v1/file.proto).
//
// It changes when a job or batch begins or ends, so that a question costs the same however many files open jobs have.
// Not here: the files themselves (files/file_store.h). Pure; not thread-safe. Start with FilesOf and UsersOf.
#ifndef HONE_TRACKER_QUEUE_FILE_USES_H_
#define HONE_TRACKER_QUEUE_FILE_USES_H_

#include <set>
#include <string>
#include <unordered_map>

#include "hone/v1/job.pb.h"
#include "hone/v1/run.pb.h"

namespace hone::tracker {

// The digests of the files that a run reads, and that a job names.
inline std::set<std::string> FilesOf(const v1::RunTask& task) {
  std::set<std::string> digests;
  for (const v1::FileName& package : task.packages()) digests.insert(package.digest());
  if (task.has_inputs()) digests.insert(task.inputs().digest());
  return digests;
}
inline std::set<std::string> FilesOf(const v1::JobSpec& spec) {
  std::set<std::string> digests = FilesOf(spec.run());
  for (const v1::ModelFile& file : spec.model().files()) digests.insert(file.file().digest());
  return digests;
}

class FileUses {
 public:
  // user: the id of a job or batch that names these files. It may be added once.
  void Add(const std::string& user, const std::set<std::string>& digests) {
    for (const std::string& digest : digests) users_[digest].insert(user);
  }
  void Remove(const std::string& user, const std::set<std::string>& digests) {
    for (const std::string& digest : digests) {
      const auto found = users_.find(digest);
      if (found == users_.end()) continue;
      found->second.erase(user);
      if (found->second.empty()) users_.erase(found);
    }
  }
  bool IsUsed(const std::string& digest) const { return users_.contains(digest); }
  std::set<std::string> UsersOf(const std::string& digest) const {
    const auto found = users_.find(digest);
    return found == users_.end() ? std::set<std::string>() : found->second;
  }

 private:
  std::unordered_map<std::string, std::set<std::string>> users_;  // by digest; none is empty
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_FILE_USES_H_
