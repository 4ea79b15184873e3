// SPDX-License-Identifier: Apache-2.0
// What a tuner is asked to do, and what it says of how far it is. Plain values; convert.h has the messages.
#ifndef HONE_TUNER_JOB_H_
#define HONE_TUNER_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "records/failure.h"

namespace hone::tuner {

struct JobWorkload {
  std::string digest, text;
  std::string op;     // for people
  int64_t count = 1;  // times the model runs it
  // Tiles that served elsewhere (space::TileHint), tried before anything is searched.
  std::vector<std::string> hints = {};
};

struct WorkloadProgress {
  std::string digest;
  int64_t trials = 0;
  std::optional<double> default_seconds, best_seconds;
  std::string best_schedule;
  double roofline_share = 0;  // of the best; 0: not known
  std::string trouble;        // what went wrong where nothing was measured
};

// Where the time went, as TimeSpent in hone/v1/job.proto says it.
struct TimeSpent {
  double proposing = 0, learning = 0, building = 0, waiting = 0, measuring = 0;  // seconds
  int64_t drawn = 0, illegal = 0, repeated = 0;                                  // candidates
};

struct Progress {
  int64_t trials = 0;  // candidates with an outcome, failed ones included
  std::map<records::FailureKind, int64_t> failed;
  double seconds = 0;                       // spent tuning
  std::vector<WorkloadProgress> workloads;  // in the order of the job
  // Of the whole model, once every workload was measured.
  std::optional<double> latency_before_seconds, latency_after_seconds;
  std::string activity;  // one line for people
  TimeSpent spent;
};

struct Job {
  std::vector<JobWorkload> workloads;
  std::string target;             // text
  int64_t trials = 0;             // over all workloads; 0: no limit
  std::optional<double> seconds;  // of tuning
  uint64_t seed = 0;
  int priority = 0;
  std::map<std::string, std::string> labels;    // that the device must have
  std::vector<std::string> devices;             // names, one of which it must have; none: any
  std::string device_digest;                    // of the kind of device that is to measure for it, or has; empty: any
  absl::Duration heartbeat = absl::Seconds(5);  // so often the tuner gives a sign of life
  absl::Time until = absl::InfiniteFuture();    // by the wall clock: ends then, whether it had to wait or not
  std::map<std::string, std::string> options;   // one that the tuner does not know is an error
  Progress earlier;                             // of attempts before this one
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_JOB_H_
