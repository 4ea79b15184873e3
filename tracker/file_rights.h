// SPDX-License-Identifier: Apache-2.0
// Who may fetch a file of the tracker's store, whose quota a file counts against, and which files a job may name
// (decision 0289).
//
// Everybody who may read jobs sees the digests of their files, so a digest alone gives no right to the contents. Not
// here: the roles that may call at all (access.h), and who has shown to have a file (files/file_store.h). Safe from any
// thread; it takes the lock of the farm for a moment.
#ifndef HONE_TRACKER_FILE_RIGHTS_H_
#define HONE_TRACKER_FILE_RIGHTS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "files/file_store.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/run.pb.h"
#include "tracker/shell.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

class FileRights {
 public:
  // Both must outlive this object.
  FileRights(Shell* shell, files::FileStore* store) : shell_(shell), store_(store) {}

  // caller: nullopt is the owner of the private socket, who may fetch every file, as admins may. A client may fetch
  // files that it has, and outputs of its runs. An agent may fetch the files of runs that its devices have leased, a
  // tuner the models of jobs that it holds. kPermissionDenied.
  absl::Status CheckFetch(const std::optional<FarmIdentity>& caller, const std::string& digest) const;

  // The identity whose quota a file counts against that the caller offers: outputs that an agent brings count for the
  // submitter of the run, packages that a tuner brings for the submitter of the job. "": no quota of one identity.
  std::string OwnerOf(const std::optional<FarmIdentity>& caller) const;

  // Whether the caller may submit a job with the files that it names. kFailedPrecondition: one is not in the store, or
  // the caller has not shown to have it. kInvalidArgument: one has another size than the job says.
  absl::Status CheckJob(const std::optional<FarmIdentity>& caller, const v1::JobSpec& spec) const;
  // The same for a run that a tuner submits in a job.
  absl::Status CheckTask(const std::optional<FarmIdentity>& caller, const v1::RunTask& task) const;

  // The request of an agent with an error in place of each result whose report names outputs that the agent has not
  // sent, or another size than they have. nullopt: there is none, and the request is right as it is.
  std::optional<v1::SynchronizeRequest> WithoutFalseOutputs(const std::optional<FarmIdentity>& agent,
                                                            const v1::SynchronizeRequest& request) const;

 private:
  bool HasRunWithOutputs(const FarmIdentity& client, const std::string& digest) const;
  absl::Status CheckOutputs(const std::optional<FarmIdentity>& agent, const v1::RunReport& report) const;
  absl::Status CheckFile(const std::optional<FarmIdentity>& caller, const v1::FileName& file) const;

  Shell* const shell_;
  files::FileStore* const store_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_FILE_RIGHTS_H_
