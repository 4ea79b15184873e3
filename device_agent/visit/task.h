// SPDX-License-Identifier: Apache-2.0
// The task of a child, packed as bytes, because a child may be forked before its visit is known. The artifact, the
// inputs and the result memory come with it as files. Both ends are the same program, so the format is private.
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
struct VerifiedCandidate {
  int candidate;
  int64_t calls;
  double median_seconds;
};

struct VisitTask {
  SessionPurpose purpose = SessionPurpose::kReference;
  double deadline = std::numeric_limits<double>::infinity();  // SecondsNow after which no step is begun
  int64_t cold_bytes = 0;      // bytes of cold numbers for repeats; 0: constants stay warm
  std::vector<int> to_verify;  // indices of candidates
  std::vector<VerifiedCandidate> verified;
};

// The packet of a task, and the files that come with it, in this order. All are read-only except the result memory,
// which a building child does not get.
inline constexpr char kTaskPacket[] = "task";
enum TaskFile : size_t { kTaskFile, kArtifactFile, kInputsFile, kResultFile };

// Packs the task and the batch without its artifact.
std::string Pack(const VisitTask& task, const VisitBatch& batch);
// Reads the bytes of Pack; batch.artifact stays as it is. kInternal: Pack did not write them.
absl::Status Unpack(std::string_view bytes, VisitTask& task, VisitBatch& batch);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_TASK_H_
