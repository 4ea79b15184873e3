// SPDX-License-Identifier: Apache-2.0
// Fills a records file with made-up rows, as large and as similar as those of long tunes. Times the queries of build
// scripts and users, and prints JSON. docs/TESTING.md, "Many records".
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/digest.h"
#include "base/median.h"
#include "base/random.h"
#include "base/seconds_since.h"
#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/store.h"
#include "storage/open.h"

namespace hone::records {
namespace {

constexpr int64_t kWorkloadsOfAModel = 30;
constexpr int64_t kRowsOfAWorkload = 2000;  // rows under one key after a long tune
constexpr int64_t kRowsOfABatch = 64;

std::string DigestOf(int64_t workload) { return Sha256Hex(fmt::format("workload {}", workload)); }

Key KeyOf(int64_t workload) {
  return {DigestOf(workload), "x86_64 -mcpu=znver4 -threads=2 -l1=32768 -l2=1048576 -l3=33554432",
          fmt::format("x86_64 made-up board {}, 2 cores, avx512f avx512bw avx512vnni", workload % 7),
          "hone-0.1.0 codegen-4 llvm-19"};
}

// The schedules are as long as those that templates write for convolutions.
std::string ScheduleOf(Random& random) {
  std::string text = "inline t2\n";
  for (int step = 0; step < 20; ++step) text += fmt::format("split i{} {} mask\n", step, 1 + random.Below(64));
  return text;
}

Record Row(int64_t number, Random& random) {
  const int64_t workload = number / kRowsOfAWorkload, within = number % kRowsOfAWorkload;
  Record record;
  record.key = KeyOf(workload);
  record.measurement_id = fmt::format("farm/{}/{}", number / kRowsOfABatch, number % kRowsOfABatch);
  record.batch_id = fmt::format("farm/{}", number / kRowsOfABatch);
  record.schedule = ScheduleOf(random);
  record.decisions = "tile=4,16 order=2 unroll=1 layout=0 cache=3 split=8,32 vector=16";
  record.operator_label = fmt::format("conv2d {} + relu", workload % 50);
  record.workload_text = std::string(2000, 'w');
  record.flops = 2.5e8;
  record.environment = "kernel=6.1 governor=performance smt=off";
  record.measured_by = "board-3";
  record.measured_at = Instant(std::chrono::milliseconds(1'700'000'000'000 + number));
  if (random.Below(6) == 0) {
    record.outcome = Failure{random.Below(10) == 0 ? FailureKind::kCrashed : FailureKind::kScheduleIllegal, "why not"};
    return record;
  }
  Timing timing = {.calls_per_repeat = 10, .verified = true, .tolerance = 1e-4, .max_error = 1e-6};
  timing.confirmed = within >= kRowsOfAWorkload - 4;
  for (int i = 0; i < 12; ++i) timing.seconds.push_back(1e-3 * (1 + 1e-4 * static_cast<double>(random.Below(10000))));
  record.is_default = within == kRowsOfAWorkload - 4;
  record.outcome = std::move(timing);
  return record;
}

// Appends rows after the existing ones.
absl::Status Fill(Store& store, int64_t there, int64_t rows) {
  Random random(static_cast<uint64_t>(there) + 1);
  constexpr int64_t kRecordsPerAppend = 5000;
  for (int64_t first = there; first < rows; first += kRecordsPerAppend) {
    std::vector<Record> batch;
    for (int64_t i = first; i < std::min(rows, first + kRecordsPerAppend); ++i) batch.push_back(Row(i, random));
    HONE_ASSIGN_OR_RETURN(const AppendReport report, store.Append(batch));
    HONE_CHECK(report.rejected.empty());
  }
  return absl::OkStatus();
}

// Median time of several tries, in milliseconds.
template <typename Ask>
double Time(Ask ask) {
  std::vector<double> tries;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    HONE_CHECK(ask(i).ok());
    tries.push_back(SecondsSince(start) * 1e3);
  }
  return Median(std::move(tries));
}

absl::Status Run(const std::string& path, int64_t rows) {
  HONE_ASSIGN_OR_RETURN(const auto store, storage::OpenRecords(path, OpenMode::kReadWrite));
  HONE_ASSIGN_OR_RETURN(const Stats before, store->Summarize());
  const auto start = std::chrono::steady_clock::now();
  const bool fills = before.records < rows;
  if (fills) HONE_RETURN_IF_ERROR(Fill(*store, before.records, rows));
  const double fill_seconds = SecondsSince(start);
  const int64_t workloads = std::max<int64_t>(1, rows / kRowsOfAWorkload);
  const double model_ms = Time([&](int i) -> absl::Status {
    for (int64_t w = 0; w < kWorkloadsOfAModel; ++w) {
      HONE_RETURN_IF_ERROR(store->AllBest({.workload_digest = DigestOf((i * 97 + w) % workloads)}).status());
    }
    return absl::OkStatus();
  });
  const double page_ms = Time([&](int i) { return store->Query({.after_row = i * rows / 8, .limit = 100}).status(); });
  const double failed_ms = Time([&](int) {
    return store->Query({.failure = FailureKind::kCrashed, .after_row = rows / 2, .limit = 100}).status();
  });
  const double label_ms =
      Time([&](int) { return store->Query({.operator_label = "conv2d 7 ", .limit = 100}).status(); });
  const double common_ms = Time([&](int i) {
    return store->Query({.operator_label = "conv2d", .after_row = i * rows / 8, .limit = 100}).status();
  });
  const double stats_ms = Time([&](int) { return store->Summarize().status(); });
  const nlohmann::ordered_json result = {
      {"rows", rows},
      {"rows_per_second", fills ? static_cast<double>(rows - before.records) / fill_seconds : 0},
      {"file_bytes", std::filesystem::file_size(path)},
      {"best_of_model_ms", model_ms},
      {"page_ms", page_ms},
      {"page_of_a_failure_ms", failed_ms},
      {"page_of_an_operator_ms", label_ms},
      {"page_of_a_common_operator_ms", common_ms},
      {"stats_ms", stats_ms}};
  fmt::print("{}\n", result.dump(2));
  return absl::OkStatus();
}

}  // namespace
}  // namespace hone::records

int main(int argc, char** argv) {
  CLI::App app("fills a records file and times questions");
  std::string path;
  int64_t rows = 1'000'000;
  app.add_option("file", path, "records file to make, or one that an earlier run has made")->required();
  app.add_option("--rows", rows, "rows that it shall have")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hone::records::Run(path, rows);
  if (!status.ok()) fmt::print(stderr, "{}\n", std::string(status.message()));
  return status.ok() ? 0 : 1;
}
