// SPDX-License-Identifier: Apache-2.0
#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/median.h"
#include "base/one_line.h"
#include "base/quantile.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "tracker/job_json.h"

namespace hone::cli {
namespace {

using tracker::ValueOrNull;

// A package on a device. The optional values are empty where there is no report, or where it does not tell.
struct ComparedRow {
  const ComparedDevice* device;
  std::string package;
  std::optional<double> median, p90, load;  // seconds
  std::optional<double> memory;             // bytes
  std::optional<double> roofline;           // share
  std::optional<double> watts, celsius;
  std::string roofline_unknown;  // why the share is missing although there is a report
  bool fastest = false;          // of all devices with this package
};

void Fill(const v1::RunReport& run, const v1::PackageReport& report, ComparedRow& row) {
  const std::vector<double> seconds(report.seconds().begin(), report.seconds().end());
  if (seconds.empty()) return;
  row.median = Median(seconds);
  row.p90 = Quantile(seconds, 0.9);
  row.load = report.load_seconds();
  if (report.peak_memory_bytes() > 0) row.memory = static_cast<double>(report.peak_memory_bytes());
  if (run.has_power_watts()) row.watts = run.power_watts();
  if (run.has_temperature_after_c()) row.celsius = run.temperature_after_c();
  if (const std::optional<double> bound = tracker::RooflineSeconds(report, run)) {
    row.roofline = *bound / *row.median;
  } else if (!run.has_roofline()) {
    row.roofline_unknown = "the device has no measured roofline";
  } else {
    row.roofline_unknown = report.work_unknown().empty() ? "its agent does not report it" : report.work_unknown();
  }
}

std::vector<ComparedRow> RowsOf(const std::vector<ComparedDevice>& devices) {
  std::vector<ComparedRow> rows;
  std::map<size_t, double> fastest;  // median, by the number of the package
  for (const ComparedDevice& device : devices) {
    const v1::RunReport& run = device.job.progress().run();
    for (size_t i = 0; i < device.packages.size(); ++i) {
      ComparedRow& row = rows.emplace_back();
      row.device = &device;
      row.package = device.packages[i];
      const auto index = static_cast<int>(i);
      if (device.HasAnswered() && index < run.packages_size()) Fill(run, run.packages(index), row);
      if (!row.median.has_value()) continue;
      const auto [best, is_first] = fastest.try_emplace(i, *row.median);
      if (!is_first) best->second = std::min(best->second, *row.median);
    }
  }
  size_t next = 0;
  for (const ComparedDevice& device : devices) {
    for (size_t i = 0; i < device.packages.size(); ++i, ++next) {
      rows[next].fastest = rows[next].median.has_value() && *rows[next].median == fastest.at(i);
    }
  }
  return rows;
}

std::string AnswerOf(const ComparedDevice& device) {
  if (device.HasAnswered()) return "answered";
  if (device.job.id().empty() || device.job.state() == v1::JOB_STATE_FAILED) return "failed";
  return "waiting";
}

// One column of numbers; `text` gives a cell.
struct Column {
  const char* title;
  size_t width;
  std::function<std::optional<std::string>(const ComparedRow&)> text;
};

// A column with the value of a field, by a function that prints it.
Column ColumnOf(const char* title, size_t width, std::optional<double> ComparedRow::* field,
                std::string (*print)(double)) {
  return {title, width, [field, print](const ComparedRow& row) {
            const std::optional<double>& value = row.*field;
            return value.has_value() ? std::optional(print(*value)) : std::nullopt;
          }};
}

// The columns that some row fills.
std::vector<Column> FilledColumns(const std::vector<ComparedRow>& rows) {
  std::vector<Column> columns = {
      ColumnOf("median", 10, &ComparedRow::median, Latency),
      ColumnOf("p90", 10, &ComparedRow::p90, Latency),
      ColumnOf("memory", 10, &ComparedRow::memory, BytesText),
      ColumnOf("load", 10, &ComparedRow::load, Latency),
      ColumnOf("roofline", 9, &ComparedRow::roofline, [](double share) { return fmt::format("{:.1f}%", 100 * share); }),
      ColumnOf("power", 8, &ComparedRow::watts, [](double watts) { return fmt::format("{:.1f} W", watts); }),
      ColumnOf("C", 6, &ComparedRow::celsius, [](double celsius) { return fmt::format("{:.1f}", celsius); })};
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(rows, [&](const ComparedRow& row) { return column.text(row).has_value(); });
  });
  return columns;
}

// A line for each reason why answered rows lack a share of the roofline.
std::string RooflineNotes(const std::vector<ComparedRow>& rows) {
  std::set<std::string> told;
  std::string text;
  for (const ComparedRow& row : rows) {
    if (row.roofline_unknown.empty()) continue;
    const std::string note = fmt::format("no share of the roofline for {}: {}", row.package, row.roofline_unknown);
    if (told.insert(note).second) text += OneLine(note) + "\n";
  }
  return text;
}

}  // namespace

std::string NamesOfMissing(const std::vector<ComparedDevice>& devices) {
  std::string names;
  for (const ComparedDevice& device : devices) {
    if (!device.HasAnswered()) names.append(names.empty() ? "" : ", ").append(device.name);
  }
  return names;
}

nlohmann::ordered_json ComparisonToJson(const std::vector<ComparedDevice>& devices) {
  const auto value = [](const std::optional<double>& number, double factor = 1) {
    return ValueOrNull(number.has_value(), number.value_or(0) * factor);
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ComparedRow& row : RowsOf(devices)) {
    const v1::RunReport& run = row.device->job.progress().run();
    list.push_back({{"device", row.device->name},
                    {"package", row.package},
                    {"state", AnswerOf(*row.device)},
                    {"reason", row.device->reason},
                    {"fastest", row.fastest},
                    {"median_ms", value(row.median, tracker::kMillisecondsPerSecond)},
                    {"p90_ms", value(row.p90, tracker::kMillisecondsPerSecond)},
                    {"load_ms", value(row.load, tracker::kMillisecondsPerSecond)},
                    {"peak_memory_bytes", value(row.memory)},
                    {"roofline_share", value(row.roofline)},
                    {"roofline_unknown", row.roofline_unknown},
                    {"power_watts", value(row.watts)},
                    {"power_source", run.power_source()},
                    {"temperature_c", value(row.celsius)},
                    {"job", row.device->job.id()}});
  }
  return {{"rows", std::move(list)}};
}

std::string ComparisonToText(const std::vector<ComparedDevice>& devices) {
  const std::vector<ComparedRow> rows = RowsOf(devices);
  const std::vector<Column> columns = FilledColumns(rows);
  size_t device_width = 6, package_width = 7;
  for (const ComparedRow& row : rows) {
    device_width = std::max(device_width, row.device->name.size());
    package_width = std::max(package_width, row.package.size());
  }
  std::string text = fmt::format("  {:<{}}  {:<{}}", "device", device_width, "package", package_width);
  for (const Column& column : columns) text += fmt::format(" {:>{}}", column.title, column.width);
  text += "\n";
  for (const ComparedRow& row : rows) {
    std::string line = fmt::format("{} {:<{}}  {:<{}}", row.fastest ? '*' : ' ', row.device->name, device_width,
                                   row.package, package_width);
    if (row.median.has_value()) {
      for (const Column& column : columns) line += fmt::format(" {:>{}}", column.text(row).value_or("-"), column.width);
    } else {
      line += fmt::format("  {}: {}", AnswerOf(*row.device), row.device->reason);
    }
    text += OneLine(line) + "\n";
  }
  return text + RooflineNotes(rows);
}

}  // namespace hone::cli
