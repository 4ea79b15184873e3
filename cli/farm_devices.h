// SPDX-License-Identifier: Apache-2.0
// The devices of a farm that a command's --device means: found among those known, with what is compiled for them.
//
// Which device answers to which words is the tracker's rule (tracker/queue/matches.h), so that a command means what the
// farm does. Start at DevicesMeant.
#ifndef HONE_CLI_FARM_DEVICES_H_
#define HONE_CLI_FARM_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/tracker_options.h"
#include "compiler/target/target.h"
#include "hone/v1/admin.pb.h"

namespace hone::cli {

// "board/cpu"
std::string NameOf(const v1::Device& device);

// Those that one --device means, at least one. kNotFound: there is none; the text names those there are.
absl::StatusOr<std::vector<v1::Device>> DevicesMeant(const std::vector<v1::Device>& known, const std::string& words);

// What to compile for it. threads: instead of the device's own; 0 for those. kFailedPrecondition: it does not say.
absl::StatusOr<target::Target> TargetOf(const v1::Device& device, int threads);

// All that the tracker knows of. Fills in the tracker that was joined where none is given.
absl::StatusOr<std::vector<v1::Device>> KnownDevices(TrackerOptions& tracker);

// What a package is compiled for that is to run on a device.
struct DevicePlace {
  target::Target target;
  std::string fingerprint;  // text, as records have it
};

// One for each kind of device that is meant, in the order of `asked`. Usage error: devices of two kinds have one
// target, of which a package can have only one program.
absl::StatusOr<std::vector<DevicePlace>> PlacesMeant(const std::vector<v1::Device>& known,
                                                     const std::vector<std::string>& asked, int threads);

}  // namespace hone::cli

#endif  // HONE_CLI_FARM_DEVICES_H_
