// SPDX-License-Identifier: Apache-2.0
// Watches the jobs of a command to their end, shows them, and cancels them when the user wants the end. For commands
// that wait for their jobs: `tune`, and runs on devices.
//
// Not here: the connection (job_client.h) and the display (job_view.h). Start at JobFollower::Follow.
#ifndef HONE_CLI_JOB_FOLLOWER_H_
#define HONE_CLI_JOB_FOLLOWER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/interrupts.h"
#include "cli/job_client.h"
#include "cli/local_device_monitor.h"
#include "cli/local_farm.h"
#include "hone/v1/job.pb.h"

namespace hone::cli {

// The tracker of a local farm may be unable to store this long.
inline constexpr absl::Duration kOutageTimeMax = absl::Seconds(3);

// Used by one thread at a time.
class JobFollower {
 public:
  // tracker: its address, for errors. farm: is checked in between; null if the command uses another farm. client,
  // interrupts and farm must outlive this object.
  JobFollower(JobClient& client, const Interrupts& interrupts, const std::string& tracker, LocalFarm* farm)
      : client_(client), interrupts_(interrupts), tracker_(tracker), farm_(farm), device_(client) {}

  // Watches the jobs until all have ended. `jobs` are updated to their latest known state, also if an error ends the
  // watching. stop: polled; its first text that is not empty is shown to the user, and the jobs are cancelled. While
  // the tracker does not answer, cancelling is retried until the interrupts insist on the end.
  absl::Status Follow(std::vector<v1::Job>& jobs, const std::function<std::string_view()>& stop);

 private:
  JobClient& client_;
  const Interrupts& interrupts_;
  const std::string tracker_;
  LocalFarm* const farm_;
  LocalDeviceMonitor device_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_FOLLOWER_H_
