// SPDX-License-Identifier: Apache-2.0
// The farm as the tuning loop sees it: progress reports, measurements and records. FarmClient (farm_client.h) asks a
// tracker; tests have a fake.
//
// Errors of every call: Aborted (the lease has expired), Cancelled (the job was cancelled, or Abandon was called),
// ResourceExhausted (a quota of the tracker stayed exhausted for two minutes).
// Calls wait without limit for a tracker that cannot be reached or cannot store anything. Thread-safe. Start with Farm.
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

// A device that can measure for the job. Its fingerprint identifies its kind, which records are kept for.
struct FarmDevice {
  std::string fingerprint, fingerprint_digest;
  double peak_gflops = 0;  // as the device's self-test measured it; 0: not known
};

// The key under which the measurements of a workload are recorded.
struct RecordKey {
  std::string workload_digest, target, device_fingerprint, compiler_version;
};

// One record of a key: a candidate that was measured, or failed, in an earlier run.
struct PastTrial {
  std::string schedule, decisions;  // texts
  bool confirmed = false;           // measured in a confirmation
  Outcome outcome;
  std::string batch;  // id of its batch, shared by the trials of one visit; may be empty
  absl::Time measured_at = absl::UnixEpoch();
  std::string sizes = {};  // Batch::sizes of its batch
};

// The winner of a key, as records/winner.h decides.
struct PastWinner {
  std::string schedule, decisions;        // texts
  bool exact = false;                     // false: of another compiler or kind of device, only a starting point
  double seconds = 0;                     // of one call
  std::optional<double> default_seconds;  // the default schedule's, measured beside it; empty: not known
  bool confirmed = false;                 // it won a confirmation
  std::string sizes = {};                 // as in PastTrial
};

// A candidate that did not compile. It is recorded like a measured one.
struct BuildFailed {
  BatchCandidate candidate;
  Failure failure;
};

class Farm {
 public:
  virtual ~Farm() = default;
  // Sends the progress, which also renews the lease.
  virtual absl::Status Report(const Progress& progress) = 0;
  // Renews the lease. Gives up after some seconds without an error; other calls report what is wrong.
  virtual void RenewLease() = 0;
  // Submits the batch and waits until it is measured. Its outcomes are recorded before this returns. Some seconds after
  // Batch::useful_seconds it gives up, and Measured::error says so. InvalidArgument: the batch was refused, which says
  // nothing about others.
  virtual absl::StatusOr<Measured> Measure(const Batch& batch) = 0;
  // A device that fulfils the requirements and may get work; nullopt: there is none at present.
  virtual absl::StatusOr<std::optional<FarmDevice>> FindDevice(const Requirements& requirements) = 0;
  // All records of the key, oldest first.
  virtual absl::StatusOr<std::vector<PastTrial>> Records(const RecordKey& key) = 0;
  // The winner of the key, or of its workload and target on other devices or compilers; nullopt: there is none.
  virtual absl::StatusOr<std::optional<PastWinner>> Best(const RecordKey& key) = 0;
  // Appends the failures to the records, where devices' measurements are. InvalidArgument: one was refused.
  virtual absl::Status RecordFailures(const RecordKey& key, const Batch& batch,
                                      const std::vector<BuildFailed>& failures) = 0;
  // Requeues the job and gives up its lease. The tracker leases it again, to any tuner, when a device fulfils `needs`.
  virtual absl::Status RequeueJob(const Requirements& needs) = 0;
  // Ends the calls under way and all later ones with Cancelled.
  virtual void Abandon() = 0;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_FARM_H_
