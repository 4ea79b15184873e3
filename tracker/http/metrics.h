// SPDX-License-Identifier: Apache-2.0
// The tracker's metrics as Prometheus reads them, in its text format 0.0.4. docs/guides/operating.md lists each.
//
// Labels are of few values each: kinds, states. Nothing is per candidate, job or workload: that is what records are
// for. Pure but for CollectFigures. Start at PrintMetrics.
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

// Text in that format, family by family.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // Begins a family: its samples come next. type: "counter", "gauge", "histogram".
  void Family(std::string_view name, std::string_view type, std::string_view help);
  void Sample(double value, const Labels& labels = {});
  void Samples(const Histogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, const Labels& labels, double value);

  std::string family_, text_;
};

// What of the tracker is shown, as of one moment.
struct Figures {
  v1::GetFarmResponse farm;
  std::map<std::string, int> jobs;              // by name of the state
  std::map<std::string, int> activity, health;  // devices, by name
  int drained = 0;                              // devices of drained agents
  std::map<std::string, int64_t> outcomes;      // accepted, by kind; "timed" is none
  Histogram lease_waits = LongTimes(), commits = ShortTimes();
  bool storing = true;                             // the disk takes what is to be stored
  int64_t records_bytes = 0, disk_free_bytes = 0;  // as DiskUse has it
  absl::Time started;
};

std::string PrintMetrics(const Figures& figures);

// What the disk has left for the records, and what they take: the file, and its -wal, in which they wait to get into
// it. 0 where the system does not say.
struct DiskUse {
  int64_t records_bytes = 0, free_bytes = 0;
};
DiskUse DiskUseOf(const std::filesystem::path& records);

Figures CollectFigures(Shell& shell, const std::filesystem::path& records);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_METRICS_H_
