// SPDX-License-Identifier: Apache-2.0
// Handlers for records: search, winners, export, and pages about one workload or one candidate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "base/status.h"
#include "records/jsonl.h"
#include "tracker/http/api.h"
#include "tracker/http/commands.h"
#include "tracker/http/importance.h"
#include "tracker/http/json.h"

namespace hone::tracker {
namespace {

constexpr int64_t kRowsDefault = 100, kRowsMax = 1000;
constexpr int64_t kPointsDefault = 2000, kPointsMax = 10'000;
constexpr int64_t kSamplesDefault = 300, kSamplesMax = 1000;
constexpr int64_t kExportedRowsMax = 10'000;
constexpr int64_t kTrialsMax = 10'000;
constexpr size_t kPageBytes = 4 << 20;    // memory of the rows of a page; a page has at least one row, of any size
constexpr size_t kTrialBytes = 64 << 20;  // memory of the rows from which importance is computed
constexpr size_t kWinnersMax = 200;       // of one workload

absl::StatusOr<records::Filter> FilterOf(const ApiCall& call, int64_t usual, int64_t most) {
  records::Filter filter;
  filter.workload_digest = call.Parameter("workload");
  filter.operator_label = call.Parameter("operator");
  filter.target = call.Parameter("target");
  filter.device_fingerprint = call.Parameter("device");
  filter.compiler_version = call.Parameter("compiler");
  HONE_ASSIGN_OR_RETURN(const int64_t confirmed, call.Number("confirmed", 0, 0, 1));
  filter.confirmed_only = confirmed == 1;
  filter.byte_limit = kPageBytes;
  HONE_ASSIGN_OR_RETURN(filter.after_row, call.Number("after_row", 0, 0, INT64_MAX));
  HONE_ASSIGN_OR_RETURN(const int64_t limit, call.Number("limit", usual, 1, most));
  filter.limit = static_cast<size_t>(limit);
  const std::string kind = call.Parameter("kind");
  if (kind == "timed") {
    filter.outcomes = records::Filter::Outcomes::kTimed;
  } else if (kind == "failed") {
    filter.outcomes = records::Filter::Outcomes::kFailed;
  } else if (!kind.empty()) {
    filter.failure = FailureKindFromName(kind);
    if (!filter.failure.has_value()) {
      return absl::InvalidArgumentError(fmt::format("kind={}: give timed, failed, or a kind of failure", kind));
    }
  }
  return filter;
}

// The position where the next page of winners begins, as text: "3.1.4.1".
std::string Print(const records::KeyNumbers& numbers) { return fmt::format("{}", fmt::join(numbers, ".")); }

absl::StatusOr<records::KeyNumbers> ParseNumbers(const std::string& text) {
  records::KeyNumbers numbers{};
  if (text.empty()) return numbers;
  const char *at = text.data(), *end = at + text.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [stopped, error] = std::from_chars(at, end, numbers[i]);
    const bool last = i + 1 == numbers.size();
    if (error != std::errc() || (last ? stopped != end : stopped == end || *stopped != '.')) {
      return absl::InvalidArgumentError(fmt::format("after={}: give the `next` of the previous page", text));
    }
    at = last ? stopped : stopped + 1;
  }
  return numbers;
}

// The text of a workload. kNotFound: no record has it; the error omits the path of the records file, which is private.
absl::StatusOr<std::string> TextOf(const records::Store& store, const std::string& digest) {
  absl::StatusOr<std::string> text = store.WorkloadText(digest);
  if (!absl::IsNotFound(text.status())) return text;
  return absl::NotFoundError(fmt::format("there are no records of workload {}", digest));
}

// A page of records of a workload: in the order measured, or the newest first.
absl::StatusOr<records::Page> PointsOf(const records::Store& store, const records::Filter& filter,
                                       const std::string& order, int64_t before_row) {
  if (order == "newest") return store.Newest(filter, before_row > 0 ? before_row : INT64_MAX);
  if (order.empty() && before_row == 0) return store.Query(filter);
  return absl::InvalidArgumentError(
      fmt::format("order={}: give newest or nothing; before_row goes only with newest", order));
}

// A page of winners from `after` on; empty only where there are none. `next` is null in the last page.
absl::StatusOr<Json> BestPageToJson(const records::Store& store, const records::Filter& filter,
                                    records::KeyNumbers after, size_t limit) {
  Json best = Json::array(), next = nullptr;
  while (best.size() < limit) {
    HONE_ASSIGN_OR_RETURN(const records::BestPage page, store.BestPageAfter(filter, after));
    for (const records::BestRecord& winner : page.best) best.push_back(BestToJson(winner));
    next = page.next.has_value() ? Json(Print(*page.next)) : Json(nullptr);
    if (!page.next.has_value()) break;
    after = *page.next;
  }
  return Json{{"best", best}, {"next", next}};
}

}  // namespace

absl::StatusOr<HttpResponse> SearchRecords(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(records::Filter filter, FilterOf(call, kRowsDefault, kRowsMax));
  filter.model = call.Parameter("model");
  HONE_ASSIGN_OR_RETURN(const records::Page page, context.store->Query(filter));
  Json rows = Json::array();
  for (const records::StoredRecord& row : page.rows) rows.push_back(RecordToJson(row));
  return JsonResponse({{"records", rows}, {"more", page.more}});
}

absl::StatusOr<HttpResponse> ListBestRecords(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const records::Filter filter, FilterOf(call, kRowsDefault, kRowsMax));
  HONE_ASSIGN_OR_RETURN(const records::KeyNumbers after, ParseNumbers(call.Parameter("after")));
  HONE_ASSIGN_OR_RETURN(const Json page, BestPageToJson(*context.store, filter, after, filter.limit));
  return JsonResponse(page);
}

absl::StatusOr<HttpResponse> ExportRecords(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(records::Filter filter, FilterOf(call, kExportedRowsMax, kExportedRowsMax));
  filter.model = call.Parameter("model");
  filter.with_workload_text = true;
  HONE_ASSIGN_OR_RETURN(const records::Page page, context.store->Query(filter));
  HttpResponse response{.type = "application/x-ndjson"};
  for (const records::StoredRecord& row : page.rows) response.body += records::RecordToJson(row.record) + "\n";
  if (page.more) response.headers.emplace_back("Hone-After-Row", std::to_string(page.rows.back().row));
  return response;
}

absl::StatusOr<HttpResponse> CountRecords(const ApiContext& context, const ApiCall&) {
  HONE_ASSIGN_OR_RETURN(const records::Stats stats, context.store->Summarize());
  Json failed = Json::object();
  for (const auto& [kind, count] : stats.failed) failed[std::string(FailureKindName(kind))] = count;
  return JsonResponse(
      {{"records", stats.records}, {"workloads", stats.workloads}, {"devices", stats.devices}, {"failed", failed}});
}

absl::StatusOr<HttpResponse> ShowWorkload(const ApiContext& context, const ApiCall& call) {
  const std::string& digest = call.names[0];
  HONE_ASSIGN_OR_RETURN(records::Filter filter, FilterOf(call, kPointsDefault, kPointsMax));
  filter.workload_digest = digest;
  HONE_ASSIGN_OR_RETURN(const int64_t before_row, call.Number("before_row", 0, 0, INT64_MAX));
  HONE_ASSIGN_OR_RETURN(const std::string text, TextOf(*context.store, digest));
  HONE_ASSIGN_OR_RETURN(const records::Page page,
                        PointsOf(*context.store, filter, call.Parameter("order"), before_row));
  // Points name their device by an index, because a fingerprint is longer than the rest of a point.
  Json points = Json::array(), devices = Json::array();
  std::map<std::string, size_t> numbers;
  for (const records::StoredRecord& row : page.rows) {
    const auto [known, is_new] = numbers.try_emplace(row.record.key.device_fingerprint, numbers.size());
    if (is_new) devices.push_back(known->first);
    points.push_back(PointToJson(row, known->second));
  }
  Json json = {{"points", std::move(points)}, {"devices", std::move(devices)}, {"more", page.more}};
  if (filter.after_row > 0 || before_row > 0) return JsonResponse(json);
  HONE_ASSIGN_OR_RETURN(const Json best, BestPageToJson(*context.store, filter, {}, kWinnersMax));
  // Any record tells the operator, because the filter may match none.
  HONE_ASSIGN_OR_RETURN(const records::Page any, context.store->Query({.workload_digest = digest, .limit = 1}));
  json["workload"] = digest;
  json["operator"] = any.rows.empty() ? "" : any.rows[0].record.operator_label;
  json["flops"] = any.rows.empty() ? 0 : any.rows[0].record.flops;
  json["text"] = text;
  json["best"] = best["best"];
  return JsonResponse(json);
}

absl::StatusOr<HttpResponse> ShowImportance(const ApiContext& context, const ApiCall& call) {
  const std::string& digest = call.names[0];
  HONE_ASSIGN_OR_RETURN(records::Filter filter, FilterOf(call, kTrialsMax, kTrialsMax));
  filter.workload_digest = digest;
  filter.outcomes = records::Filter::Outcomes::kTimed;
  filter.byte_limit = kTrialBytes;
  HONE_RETURN_IF_ERROR(TextOf(*context.store, digest).status());
  HONE_ASSIGN_OR_RETURN(const records::Page page, context.store->Newest(filter));
  std::vector<Trial> trials;
  for (const records::StoredRecord& row : page.rows) {
    const records::Key& key = row.record.key;
    trials.push_back({fmt::format("{}\n{}\n{}", key.target, key.device_fingerprint, key.compiler_version),
                      row.record.decisions, MedianToJson(row.record).get<double>() * 1e-3});
  }
  Json decisions = Json::array();
  for (const DecisionImportance& decision : ImportanceOf(trials)) {
    Json values = Json::array();
    for (const DecisionValue& value : decision.values) {
      values.push_back({{"value", value.value},
                        {"trials", value.trials},
                        {"best_ms", value.best_seconds * 1e3},
                        {"median_ms", value.median_seconds * 1e3}});
    }
    decisions.push_back({{"name", decision.name}, {"share", decision.share}, {"values", std::move(values)}});
  }
  return JsonResponse({{"trials", trials.size()}, {"decisions", std::move(decisions)}});
}

absl::StatusOr<HttpResponse> ShowDrift(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(records::Filter filter, FilterOf(call, kSamplesDefault, kSamplesMax));
  filter.outcomes = records::Filter::Outcomes::kTimed;
  HONE_ASSIGN_OR_RETURN(const auto rows, context.store->Sample(filter, filter.limit, call.Parameter("measured_by")));
  Json points = Json::array();
  for (const records::StoredRecord& row : rows) points.push_back(DriftToJson(row));
  return JsonResponse({{"points", points}});
}

absl::StatusOr<HttpResponse> ShowCandidate(const ApiContext& context, const ApiCall& call) {
  const std::string& name = call.names[0];
  int64_t row = 0;
  const auto [stopped, error] = std::from_chars(name.data(), name.data() + name.size(), row);
  const bool number = error == std::errc() && stopped == name.data() + name.size() && row > 0;
  records::Filter filter{.after_row = row - 1, .limit = 1, .with_workload_text = true};
  absl::StatusOr<records::Page> page = records::Page();
  if (number) page = context.store->Query(filter);
  if (!page.ok()) return page.status();
  if (page->rows.empty() || page->rows[0].row != row) {
    return absl::NotFoundError(fmt::format("there is no candidate {}; give the `row` of a record", name));
  }
  Json json = RecordToJson(page->rows[0]);
  // Commands for users to copy: one prints the record, one generates its kernel.
  json["command"] = QueryCommand(page->rows[0]);
  const std::optional<std::string> kernel = KernelCommand(page->rows[0].record);
  json["kernel_command"] = kernel.has_value() ? Json(*kernel) : Json(nullptr);
  return JsonResponse(json);
}

}  // namespace hone::tracker
