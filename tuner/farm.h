// SPDX-License-Identifier: Apache-2.0
// The farm as the tuning loop sees it: report, measure, remember. Behind it is a tracker (farm_client.h); in tests, a
// make-believe one.
//
// Errors of every call: Aborted (the lease is not live any more), Cancelled (the job was cancelled, or Abandon was
// called). A tracker that is away, or can store nothing now, is waited for, however long. Thread-safe.
#ifndef HONE_TUNER_FARM_H_
#define HONE_TUNER_FARM_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tuner/batch.h"
#include "tuner/job.h"

namespace hone::tuner {

struct FarmDevice {
  std::string fingerprint, fingerprint_digest;
  double peak_gflops = 0;  // as measured there
};

// Under which measurements of a workload are remembered.
struct RecordKey {
  std::string workload_digest, target, device_fingerprint, compiler_version;
};

struct PastTrial {
  std::string schedule, decisions;
  bool confirmed = false;
  Outcome outcome;
  std::string batch;  // trials of one visit share it; may be empty
  absl::Time measured_at = absl::UnixEpoch();
};

// The winner of a key, as records/winner.h decides.
struct PastWinner {
  std::string schedule, decisions;
  bool exact = false;  // else of another compiler or kind of device: good to start from
  double seconds = 0;
  std::optional<double> default_seconds;  // measured beside it
  bool confirmed = false;
};

// A candidate that never reached a device, but is a result all the same.
struct BuildFailed {
  BatchCandidate candidate;
  Failure failure;
};

class Farm {
 public:
  virtual ~Farm() = default;
  // Progress, and a sign of life.
  virtual absl::Status Report(const Progress& progress) = 0;
  // A sign of life alone. Gives up after some seconds; whatever is wrong, another call says.
  virtual void SayAlive() = 0;
  // Submits the batch and waits until it is measured. Its outcomes are in the records then.
  virtual absl::StatusOr<Measured> Measure(const Batch& batch) = 0;
  // A device that fulfils the requirements and may get work; nullopt if there is none now.
  virtual absl::StatusOr<std::optional<FarmDevice>> FindDevice(const Requirements& requirements) = 0;
  // In the order made.
  virtual absl::StatusOr<std::vector<PastTrial>> Records(const RecordKey& key) = 0;
  // Nothing if there is none for this workload and target.
  virtual absl::StatusOr<std::optional<PastWinner>> Best(const RecordKey& key) = 0;
  // Into the records, like what devices measure.
  virtual absl::Status RecordFailures(const RecordKey& key, const Batch& batch,
                                      const std::vector<BuildFailed>& failures) = 0;
  // The job is not ours any more: it waits for a device that is so, and then goes to whoever tunes.
  virtual absl::Status GiveBack(const Requirements& needs) = 0;
  // Ends the calls under way and all later ones with Cancelled.
  virtual void Abandon() = 0;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_FARM_H_
