// SPDX-License-Identifier: Apache-2.0
// The fleet watches of a farm (hone/v1/fleet_watch.proto): their schedule, their nights, and the notices that are due.
//
// Pure state: no threads, no input or output, no clock. All times are wall times, because a watch is due at a time of
// day. Not here: the jobs that measure (Farm submits them, watched_runs.cc), and how a night is judged
// (night_verdict.h). Start at Add and TakeDue. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_FLEET_WATCHES_H_
#define HONE_TRACKER_QUEUE_FLEET_WATCHES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/fleet_watch.pb.h"
#include "tracker/queue/file_uses.h"
#include "tracker/queue/limits.h"

namespace hone::tracker {

// A notice that is to be sent: about the newest measured night of a device.
struct NightNotice {
  std::string watch, device;
  std::string url;
  v1::FleetNight night;
  v1::JobNotice notice;  // the attempts so far
};

class FleetWatches {
 public:
  FleetWatches(WatchOptions options, std::vector<std::string> notify_allowed)
      : options_(options), notify_allowed_(std::move(notify_allowed)) {}

  // Restores the stored watches at start.
  void Restore(std::vector<v1::FleetWatch> watches);

  // Adds a watch. spec.devices: names of devices, "agent/device". Fills in the defaults. Errors as
  // FleetWatchService.Add, except those about devices and files.
  absl::StatusOr<const v1::FleetWatch*> Add(v1::FleetWatchSpec spec, absl::Time wall);
  void Remove(const std::string& name);                       // must exist
  const v1::FleetWatch* Find(const std::string& name) const;  // null when unknown
  // The watch. kNotFound; kPermissionDenied: `submitter` is given and did not add it.
  absl::StatusOr<const v1::FleetWatch*> FindFor(const std::string& name,
                                                const std::optional<std::string>& submitter) const;
  const std::map<std::string, v1::FleetWatch>& watches() const { return watches_; }
  const FileUses& files() const { return files_; }  // of the packages and inputs that watches measure

  // The names of watches whose due time has come, each with that time; their next due time becomes the first one after
  // `wall`. A watch that was due several times while the tracker was away is returned once.
  std::vector<std::pair<std::string, absl::Time>> TakeDue(absl::Time wall);
  // The job measures the device's night from now on.
  void NoteOpen(const std::string& name, const std::string& device, const std::string& job_id, absl::Time due);
  // Ends the device's open job, if there is one: judges the night and appends it to the nights before.
  void EndNight(const std::string& name, const std::string& device, v1::FleetNight night);
  // Takes the newest measured night of the device as good; "": of every device that has one. The watch must exist.
  // kNotFound: it has no such device. kFailedPrecondition: nothing was measured yet.
  absl::Status Accept(const std::string& name, const std::string& device);

  // Notices that were neither delivered nor given up.
  std::vector<NightNotice> NoticesToSend() const;
  // Stores the outcome of an attempt to deliver a notice. No effect if the watch is gone.
  void RecordNotice(const NightNotice& sent, const v1::JobNotice& notice);

  // What must be stored, gathered since the last call: by watch and device, where the device "" is the watch itself
  // without its devices; empty: removed.
  using Rows = std::map<std::pair<std::string, std::string>, std::optional<std::string>>;
  Rows TakeChanged();

 private:
  absl::Status CheckLimits(const v1::FleetWatchSpec& spec) const;
  v1::FleetWatchDevice& At(const std::string& name, const std::string& device);
  void SetNotice(const v1::FleetWatchSpec& spec, v1::FleetWatchDevice& device) const;

  const WatchOptions options_;
  const std::vector<std::string> notify_allowed_;
  std::map<std::string, v1::FleetWatch> watches_;  // by name
  FileUses files_;                                 // by name of the watch
  std::set<std::pair<std::string, std::string>> changed_;
};

// The first time of the day `at`, "02:00" in UTC, after `wall`. `at` must be valid.
absl::Time NextDue(const std::string& at, absl::Time wall);

// The watch as lists show it: with at most `nights` newest nights of each device.
v1::FleetWatch WithNewestNights(const v1::FleetWatch& watch, int nights);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_FLEET_WATCHES_H_
