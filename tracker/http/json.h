// SPDX-License-Identifier: Apache-2.0
// Jobs, devices and records as the JSON that docs/API.md describes. Pure. Names and units are those of `hone --json`
// where it has them: times of kernels in milliseconds, spans in seconds, instants as UTC text.
#ifndef HONE_TRACKER_HTTP_JSON_H_
#define HONE_TRACKER_HTTP_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/job.pb.h"
#include "records/source.h"

namespace hone::tracker {

using Json = nlohmann::ordered_json;

Json TimeToJson(absl::Time time);  // "2026-11-23T07:00:00.000Z"

// A line of a list of jobs; now: for the time that is left.
Json JobToJson(const v1::Job& job, absl::Time now);
// All of it, with its workloads.
Json JobDetailToJson(const v1::Job& job, absl::Time now);

// What a device measures: a job's batch.
struct Running {
  std::string job, workload;
  int attempt = 0;
  absl::Time since;
};
// running: nullptr where it measures nothing.
Json DeviceToJson(const v1::Device& device, const Running* running);

// A trial of a workload, as a point of a plot.
// Of the repeats that count; null for a failure.
Json MedianToJson(const records::Record& record);
Json DriftToJson(const records::StoredRecord& stored);
Json PointToJson(const records::StoredRecord& stored, size_t device);  // device: its number in a list beside it
// A whole record: what a line of JSON has (docs/RECORDS.md), its row, and the median of the repeats that count.
Json RecordToJson(const records::StoredRecord& stored);
Json BestToJson(const records::BestRecord& best);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_JSON_H_
