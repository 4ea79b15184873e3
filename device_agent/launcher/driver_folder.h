// SPDX-License-Identifier: Apache-2.0
// What a device's driver keeps in folders of its own, between batches.
//
// A child that measures may write whatever it likes there, and what it writes a driver would load for another batch, as
// code that it had built itself. So before the next batch all of that goes. What was built while there was no batch,
// the device's reference kernel, comes back: a driver's compiler takes a second for it, in every child.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_DRIVER_FOLDER_H_
#define HONE_DEVICE_AGENT_LAUNCHER_DRIVER_FOLDER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace hone::agent {

class DriverFolder {
 public:
  // paths: absolute, as SandboxPolicy::writable has them. There may be none.
  explicit DriverFolder(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // Removes all that is in them, and puts there what was remembered. Nobody else may change them meanwhile. An error:
  // something of a batch may be left.
  absl::Status Reset() const;
  // What Reset puts there: what is in them now. Only while nobody but children without a batch has been there since a
  // Reset. Only the first call that finds something counts.
  void Remember();

 private:
  struct Entry {
    std::string path;
    std::optional<std::string> bytes;  // none: it is a folder
  };

  const std::vector<std::string> paths_;
  std::vector<Entry> remembered_;  // a folder before what is in it
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_DRIVER_FOLDER_H_
