// SPDX-License-Identifier: Apache-2.0
// The tracker's metrics in Prometheus' text format 0.0.4. docs/guides/operating.md lists them all.
//
// Labels have few values (kinds, states). No metric is per candidate, job or workload, because records hold these.
// Pure, except CollectMetrics and DiskUseOf. Start at PrintMetrics.
#ifndef HONE_TRACKER_HTTP_METRICS_H_
#define HONE_TRACKER_HTTP_METRICS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "tracker/queue/histogram.h"
#include "tracker/shell.h"

namespace hone::tracker {

// Builds text in that format, one metric family after the other.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // Begins a family; the samples that follow belong to it. type: "counter", "gauge" or "histogram".
  void Family(std::string_view name, std::string_view type, std::string_view help);
  void Sample(double value, const Labels& labels = {});
  void Samples(const Histogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, const Labels& labels, double value);

  std::string family_, text_;
};

// The figures that the metrics show, all of one moment.
struct FarmMetrics {
  v1::GetFarmResponse farm;
  std::map<std::string, int> jobs;              // number of jobs, by state
  std::map<std::string, int> activity, health;  // number of devices, by activity and by health
  int drained = 0;                              // number of devices of drained agents
  std::map<std::string, int64_t> outcomes;      // accepted outcomes, by kind of failure; "timed": no failure
  Histogram lease_waits = QueueTimeBuckets(), commits = CommitTimeBuckets();
  bool storing = true;                             // false: storing fails, as with a full disk
  int64_t records_bytes = 0, disk_free_bytes = 0;  // as DiskUse
  absl::Time started;
};

std::string PrintMetrics(const FarmMetrics& figures);

// The size of the records (the file and its -wal, the write-ahead log), and the free space of their file system. 0
// where the system does not say.
struct DiskUse {
  int64_t records_bytes = 0, free_bytes = 0;
};
DiskUse DiskUseOf(const std::filesystem::path& records);

FarmMetrics CollectMetrics(Shell& shell, const std::filesystem::path& records);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_METRICS_H_
