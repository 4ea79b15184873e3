// Recorded schedules for `hone compile`: the best of the exact device, else of the same target, else of a near target.
#ifndef HONE_CLI_SCHEDULE_LOOKUP_H_
#define HONE_CLI_SCHEDULE_LOOKUP_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/package/compile_kernels.h"
#include "hone/v1/record.grpc.pb.h"

namespace hone::cli {

// What the kernels will run on. The fingerprint may be empty: unknown.
struct Place {
  std::string target;
  std::string device_fingerprint;
};

// From a records file. The lookup keeps it open for reading as long as it lives. kNotFound: there is no such file.
absl::StatusOr<package::ScheduleLookup> LookupInFile(const std::filesystem::path& path, const Place& place);

// From a tracker. A tracker that does not answer is reported once, at the start, as an error.
absl::StatusOr<package::ScheduleLookup> LookupAtTracker(std::shared_ptr<v1::RecordService::StubInterface> records,
                                                        const Place& place);

}  // namespace hone::cli

#endif  // HONE_CLI_SCHEDULE_LOOKUP_H_
