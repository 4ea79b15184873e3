// SPDX-License-Identifier: Apache-2.0
#include "tracker/watch_requests.h"

#include <utility>

#include "base/identity.h"
#include "base/status.h"
#include "tracker/held_call.h"
#include "tracker/queue/run_task.h"

namespace hone::tracker {
namespace {

// The submitter whose watches the caller may change; nullopt: those of everybody.
std::optional<std::string> SubmitterFor(const std::optional<FarmIdentity>& caller) {
  return caller.has_value() && caller->role != Role::kAdmin ? std::optional(UriOf(*caller)) : std::nullopt;
}

absl::StatusOr<v1::FleetWatch> Added(Shell& shell, const FileRights& rights, const std::optional<FarmIdentity>& caller,
                                     const v1::FleetWatchSpec& spec) {
  HONE_RETURN_IF_ERROR(CheckRunTask(spec.run()));  // first, so that the number of files is small
  HONE_RETURN_IF_ERROR(rights.CheckTask(caller, spec.run()));
  return Await<v1::FleetWatch>([&](Done<v1::FleetWatch> done) { shell.AddWatch(spec, std::move(done)); });
}

}  // namespace

absl::StatusOr<v1::FleetWatch> AddWatchFor(Shell& shell, const FileRights& rights,
                                           const std::optional<FarmIdentity>& caller, v1::FleetWatchSpec spec,
                                           const NoteChange& note) {
  spec.set_submitted_by(caller.has_value() ? caller->name : UserName());
  spec.set_submitter(caller.has_value() ? UriOf(*caller) : "");
  absl::StatusOr<v1::FleetWatch> watch = Added(shell, rights, caller, spec);
  note(spec.name(), watch.status());
  return watch;
}

absl::StatusOr<v1::FleetWatch> RunWatchFor(Shell& shell, const std::optional<FarmIdentity>& caller,
                                           const std::string& name, const NoteChange& note) {
  absl::StatusOr<v1::FleetWatch> watch = Await<v1::FleetWatch>(
      [&](Done<v1::FleetWatch> done) { shell.RunWatch(name, SubmitterFor(caller), std::move(done)); });
  note(name, watch.status());
  return watch;
}

absl::StatusOr<v1::FleetWatch> AcceptNightFor(Shell& shell, const std::optional<FarmIdentity>& caller,
                                              const std::string& name, const std::string& device,
                                              const NoteChange& note) {
  absl::StatusOr<v1::FleetWatch> watch = Await<v1::FleetWatch>(
      [&](Done<v1::FleetWatch> done) { shell.AcceptNight(name, device, SubmitterFor(caller), std::move(done)); });
  note(name, watch.status());
  return watch;
}

absl::StatusOr<v1::RemoveFleetWatchResponse> RemoveWatchFor(Shell& shell, const std::optional<FarmIdentity>& caller,
                                                            const std::string& name, const NoteChange& note) {
  auto removed = Await<v1::RemoveFleetWatchResponse>(
      [&](Done<v1::RemoveFleetWatchResponse> done) { shell.RemoveWatch(name, SubmitterFor(caller), std::move(done)); });
  note(name, removed.status());
  return removed;
}

}  // namespace hone::tracker
