// SPDX-License-Identifier: Apache-2.0
// Jobs, devices and records as JSON (docs/API.md). Pure. Names and units are as in `hone --json`: times of kernels in
// milliseconds, durations in seconds, points in time as UTC text.
#ifndef HONE_TRACKER_HTTP_JSON_H_
#define HONE_TRACKER_HTTP_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/job.pb.h"
#include "records/source.h"
#include "tracker/job_json.h"
#include "tracker/queue/latency_history.h"

namespace hone::tracker {

using Json = nlohmann::ordered_json;

// What people call a workload: "conv2d 32x32x16", or only its operator.
const std::string& TitleOf(const v1::WorkloadSpec& workload);

// A job as an entry of a list. now: the wall time, to compute the time that is left.
Json JobToJson(const v1::Job& job, absl::Time now);
// A whole job, with its workloads and how the latency of its model developed.
Json JobDetailToJson(const v1::Job& job, const std::vector<LatencyHistory::Point>& latency, absl::Time now);

// The batch that a device measures.
struct Running {
  std::string job, model;            // the job, and its name
  std::string workload, title = {};  // its digest and title; of a run: empty
  int attempt = 0;
  absl::Time since;
};
// running: null where the device measures nothing.
Json DeviceToJson(const v1::Device& device, const Running* running);

// The median of the repeats that count, in milliseconds; null for a failure.
Json MedianToJson(const records::Record& record);
// What a timed record tells of the speed of its device: the times of the golden and the reference kernel, drift,
// temperature and clock. The record must have a timing.
Json DriftToJson(const records::StoredRecord& stored);
// A trial as a point of a plot. device: the index of its device in a list that is sent with the points.
Json PointToJson(const records::StoredRecord& stored, size_t device);
// A whole record: the fields of a JSON line (docs/RECORDS.md), its row number, and the median of the repeats that
// count.
Json RecordToJson(const records::StoredRecord& stored);
Json BestToJson(const records::BestRecord& best);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_JSON_H_
