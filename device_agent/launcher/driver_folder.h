// SPDX-License-Identifier: Apache-2.0
// The folders in which a device's driver keeps compiled code. They are reset between batches.
//
// A measuring child can write any file there, and the driver would load it for another batch as code that it compiled
// itself. So everything is removed before the next batch. Files from the time without a batch, the compiled reference
// kernel, are restored, because compiling it would take each child a second.
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
  // paths: absolute, as in SandboxPolicy::writable; may be empty.
  explicit DriverFolder(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // Removes the contents of the folders and restores the remembered files. No other process may change them meanwhile.
  // After an error, files of a batch may be left.
  absl::Status Reset() const;
  // Remembers the present contents for Reset. Call it only if since the last Reset only children without a batch used
  // the folders. Calls after the first that found a file have no effect.
  void SaveContents();

 private:
  struct Entry {
    std::string path;
    std::optional<std::string> bytes;  // nullopt: a folder
  };

  const std::vector<std::string> paths_;
  std::vector<Entry> saved_;  // each folder before its contents
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_DRIVER_FOLDER_H_
