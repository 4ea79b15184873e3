// SPDX-License-Identifier: Apache-2.0
// What a child of a visit is to do, as bytes: it may have been forked before anybody knew of the visit. The artifact,
// the inputs and the result memory come beside it, as files. Same binary on both ends, so that it is no protocol.
#ifndef HONE_DEVICE_AGENT_VISIT_TASK_H_
#define HONE_DEVICE_AGENT_VISIT_TASK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/visit/batch.h"

namespace hone::agent {

// The purpose of a child, and of the session that it opens on its device.
enum class SessionPurpose {
  kReference,  // calls the reference kernel once; it may be slow
  kBuilding,   // only loads kernels, so that the driver keeps their compiled code for later children
  kTiming,     // verifies and times candidates, on cold constants
};

// A candidate that an earlier child verified and timed.
struct Verified {
  int candidate;
  int64_t calls;
  double median_seconds;
};

struct VisitTask {
  SessionPurpose purpose = SessionPurpose::kReference;
  double deadline = std::numeric_limits<double>::infinity();  // of SecondsNow; what is not begun by then stays undone
  int64_t cold_bytes = 0;                                     // of cold numbers that repeats take
  std::vector<int> to_verify;                                 // indices of candidates
  std::vector<Verified> verified;
};

// The packet with which it comes, and the files, in this order: all read-only but for the result memory, which a
// building child does not get.
inline constexpr char kTaskPacket[] = "task";
enum TaskFile : size_t { kTaskFile, kArtifactFile, kInputsFile, kResultFile };

// Of the batch, all but its artifact.
std::string Pack(const VisitTask& task, const VisitBatch& batch);
// Reads what Pack has written. kInternal: it did not.
absl::Status Unpack(std::string_view bytes, VisitTask& task, VisitBatch& batch);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_TASK_H_
