// SPDX-License-Identifier: Apache-2.0
// Resolves the --device of a command to devices of a farm, and gives the compilation target of each.
//
// The matching rule is the tracker's (tracker/queue/matches.h), so commands and the farm agree. Start at SelectDevices.
#ifndef HONE_CLI_FARM_DEVICES_H_
#define HONE_CLI_FARM_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/tracker_options.h"
#include "compiler/target/target.h"
#include "hone/v1/admin.pb.h"

namespace hone::cli {

// "board/cpu": the agent's name and the device's.
std::string NameOf(const v1::Device& device);

// The devices of `known` that the value `words` of one --device selects, at least one. kNotFound: none matches; the
// text lists the known devices.
absl::StatusOr<std::vector<v1::Device>> SelectDevices(const std::vector<v1::Device>& known, const std::string& words);

// The target to compile for on `device`. threads: overrides the device's number of threads; 0 = the device's own.
// kFailedPrecondition: the device reports no target.
absl::StatusOr<target::Target> TargetOf(const v1::Device& device, int threads);

// All devices that the tracker knows. If `tracker` names no tracker, the address of the joined one is filled in.
absl::StatusOr<std::vector<v1::Device>> KnownDevices(TrackerOptions& tracker);

// The compilation target for one kind of device.
struct DevicePlace {
  target::Target target;
  std::string fingerprint;  // the device's fingerprint as text, as records store it
};

// The places of all devices that the values `asked` of --device select: one for each kind of device, in the order of
// `asked`. threads: as for TargetOf. Usage error: two kinds of device have the same target, for which a package can
// have only one program.
absl::StatusOr<std::vector<DevicePlace>> SelectDevicePlaces(const std::vector<v1::Device>& known,
                                                            const std::vector<std::string>& asked, int threads);

}  // namespace hone::cli

#endif  // HONE_CLI_FARM_DEVICES_H_
