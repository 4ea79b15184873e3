// SPDX-License-Identifier: Apache-2.0
// The device of this machine, while a command with a farm of its own waits for it.
#ifndef HONE_CLI_OWN_DEVICE_H_
#define HONE_CLI_OWN_DEVICE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "cli/job_client.h"

namespace hone::cli {

// A farm waits for a device until it is well again. Somebody who waits for a command is told why it is not, instead.
class OwnDevice {
 public:
  // How long it may get no work: where the job wants another, where it failed the test of itself, and where it is in
  // quarantine for another reason, of which the first passes by itself (tracker/queue/limits.h). One that cools down is
  // waited for.
  struct Limits {
    absl::Duration failed_test = absl::Seconds(5), quarantine = absl::Minutes(15);
  };
  explicit OwnDevice(JobClient& client) : OwnDevice(client, Limits{}) {}
  OwnDevice(JobClient& client, const Limits& limits) : client_(client), limits_(limits) {}

  // What the tracker says of the job.
  void Hear(const v1::Job& job);
  // To be called now and then. Unavailable, with the tracker's reason, once it has lasted too long; or
  // FailedPrecondition where the device is well, and cannot run what the job is for.
  absl::Status Check();
  // The same of devices that the tracker knows at `now`, by SteadyNow.
  absl::Status Judge(const v1::ListDevicesResponse& known, absl::Time now);

 private:
  JobClient& client_;
  const Limits limits_;
  absl::Time well_ = SteadyNow();     // when it was last
  std::string wanted_;                // instead of it; empty: nothing
  absl::Time fitting_ = SteadyNow();  // when nothing was wanted instead
};

}  // namespace hone::cli

#endif  // HONE_CLI_OWN_DEVICE_H_
