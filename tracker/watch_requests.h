// SPDX-License-Identifier: Apache-2.0
// Changes fleet watches in the name of a caller, for gRPC and HTTP: both check and fill in the same.
#ifndef HONE_TRACKER_WATCH_REQUESTS_H_
#define HONE_TRACKER_WATCH_REQUESTS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "hone/v1/fleet_watch.pb.h"
#include "tracker/file_rights.h"
#include "tracker/shell.h"
#include "tracker/submission.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

// caller: nullopt = the user who owns the tracker. note: its object is the watch's name. Each waits until the change is
// stored. Errors as FleetWatchService, and those of FileRights::CheckTask.
absl::StatusOr<v1::FleetWatch> AddWatchFor(Shell& shell, const FileRights& rights,
                                           const std::optional<FarmIdentity>& caller, v1::FleetWatchSpec spec,
                                           const NoteChange& note);
absl::StatusOr<v1::FleetWatch> RunWatchFor(Shell& shell, const std::optional<FarmIdentity>& caller,
                                           const std::string& name, const NoteChange& note);
// device: "agent/device"; "": every device that was measured.
absl::StatusOr<v1::FleetWatch> AcceptNightFor(Shell& shell, const std::optional<FarmIdentity>& caller,
                                              const std::string& name, const std::string& device,
                                              const NoteChange& note);
absl::StatusOr<v1::RemoveFleetWatchResponse> RemoveWatchFor(Shell& shell, const std::optional<FarmIdentity>& caller,
                                                            const std::string& name, const NoteChange& note);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_WATCH_REQUESTS_H_
