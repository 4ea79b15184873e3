// SPDX-License-Identifier: Apache-2.0
// Watches the device of this machine while a command with its own local farm waits for it.
#ifndef HONE_CLI_LOCAL_DEVICE_MONITOR_H_
#define HONE_CLI_LOCAL_DEVICE_MONITOR_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "cli/job_client.h"

namespace hone::cli {

// A farm waits without limit for a device to recover. A command that a user waits for ends instead, with the reason why
// the device gets no work.
class LocalDeviceMonitor {
 public:
  // The time after which Check fails. failed_test: for a device that failed its self-test, and for a job that needs
  // another device. quarantine: for a device in quarantine for any other reason. A first quarantine ends by itself
  // before that (tracker/queue/limits.h). A device that is cooling down has no limit.
  struct Limits {
    absl::Duration failed_test = absl::Seconds(5), quarantine = absl::Minutes(15);
  };
  explicit LocalDeviceMonitor(JobClient& client) : LocalDeviceMonitor(client, Limits{}) {}
  LocalDeviceMonitor(JobClient& client, const Limits& limits) : client_(client), limits_(limits) {}

  // Takes the latest state of the job from the tracker: it says whether the job waits for another device.
  void UpdateJob(const v1::Job& job);
  // Asks the tracker for the device; call it regularly. kUnavailable, with the tracker's reason: the device
  // has had no work for longer than the limit. kFailedPrecondition: the device is healthy but cannot run the job.
  absl::Status Check();
  // As Check, for a given answer of the tracker. now: by SteadyNow.
  absl::Status CheckAnswer(const v1::ListDevicesResponse& known, absl::Time now);

 private:
  JobClient& client_;
  const Limits limits_;
  absl::Time last_working_ = SteadyNow();          // when the device was last able to work
  std::string wanted_;                             // the other device that the job waits for; empty = none
  absl::Time last_no_other_device_ = SteadyNow();  // when the job last waited for no other device
};

}  // namespace hone::cli

#endif  // HONE_CLI_LOCAL_DEVICE_MONITOR_H_
