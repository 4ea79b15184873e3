// SPDX-License-Identifier: Apache-2.0
// A tuning job and its progress. Plain values; convert.h makes messages of them. Start with Job.
#ifndef HONE_TUNER_JOB_H_
#define HONE_TUNER_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/failure_kind.h"

namespace hone::tuner {

struct JobWorkload {
  std::string digest, text;  // the text is canonical, the digest its SHA-256
  std::string op;            // operator, for display
  int64_t count = 1;         // calls in one run of the model
  // Texts of space::TileHint: tiles that another tuner found. They are tried before the search.
  std::vector<std::string> hints = {};
  // The points at which candidates are measured, as base/size_points.h writes them; empty: the workload has no open
  // sizes.
  std::string sizes = {};
  std::string title = {}, nodes = {};  // for records: a title, and the model's nodes that it computes
};

struct WorkloadProgress {
  std::string digest;
  int64_t trials = 0;                                   // in this attempt
  std::optional<double> default_seconds, best_seconds;  // of one call; empty: not measured
  std::string best_schedule;                            // text
  double roofline_share = 0;                            // lower bound divided by the best time, at most 1; 0: not known
  std::string failure_reason;  // why the workload has no measured time; empty: it has one, or no batch was lost yet
};

// How the time of a job was spent; see TimeSpent in hone/v1/job.proto.
struct TimeSpent {
  double proposing = 0, learning = 0, building = 0, waiting = 0, measuring = 0;  // seconds
  int64_t drawn = 0, illegal = 0, repeated = 0;                                  // candidates
};

// The progress of a job. The counts and times include earlier attempts, except WorkloadProgress::trials.
struct Progress {
  int64_t trials = 0;                       // candidates with an outcome, failed ones included
  std::map<FailureKind, int64_t> failed;    // number of failed candidates by kind
  double seconds = 0;                       // spent tuning
  std::vector<WorkloadProgress> workloads;  // in the order of the job
  // One run of the model with default and with best schedules; empty until every workload was measured.
  std::optional<double> latency_before_seconds, latency_after_seconds;
  std::string activity;  // what the tuner is doing, one line for display
  TimeSpent spent;
  bool search_ended = false;  // nothing is left but the run of the whole model, if the job has one
  std::string device_digest;  // the kind of device that measures; not reported
};

struct Job {
  std::string name;  // of the model, for records
  std::vector<JobWorkload> workloads;
  std::string target;             // text
  int64_t trials = 0;             // over all workloads; 0: no limit
  std::optional<double> seconds;  // time budget of tuning; empty: no limit
  uint64_t seed = 0;
  int priority = 0;                             // higher goes first
  std::map<std::string, std::string> labels;    // all of them must be labels of the device
  std::vector<std::string> devices;             // the device must match one of these; empty: any device
  std::string device_digest;                    // kind of device that must measure, or has measured before; empty: any
  absl::Duration heartbeat = absl::Seconds(5);  // interval of the calls that renew the lease
  absl::Time until = absl::InfiniteFuture();    // wall-clock time at which the job ends, even if it had to wait
  std::map<std::string, std::string> options;   // an unknown option is an error
  bool measures_model = false;                  // the whole model is run when the search has ended
  Progress earlier;                             // of earlier attempts: trials, failures, times and search_ended only
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_JOB_H_
