// SPDX-License-Identifier: Apache-2.0
#include "cli/tracker_records.h"

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/call_tracker.h"
#include "proto/convert.h"
#include "tracker/convert.h"
#include "transport/transport.h"

namespace hone::cli {
namespace {

using records::BestRecord;
using records::StoredRecord;
using tracker::FromProto;
using tracker::ToProto;

// The longest time of a call whose answer is one message. Streams have no such limit, because they may take long;
// keep-alive ends a stream whose connection breaks.
constexpr absl::Duration kCallTimeMax = absl::Seconds(60);

}  // namespace

absl::Status TrackerRecords::Annotated(const grpc::Status& status) const { return Annotate(FromGrpc(status), name()); }

absl::StatusOr<records::AppendReport> TrackerRecords::Append(std::span<const records::Record> records) {
  v1::AppendRecordsRequest request;
  for (const records::Record& record : records) *request.add_records() = ToProto(StoredRecord{0, record});
  HONE_ASSIGN_OR_RETURN(const v1::AppendRecordsResponse response,
                        CallTracker(*stub_, &v1::RecordService::Stub::Append, request, address_, kCallTimeMax));
  records::AppendReport report;
  report.appended = static_cast<size_t>(response.appended());
  report.duplicates = static_cast<size_t>(response.known());
  for (const v1::RejectedRecord& rejected : response.rejected()) {
    if (rejected.index() < 0 || rejected.index() >= static_cast<int64_t>(records.size())) continue;
    report.rejected.push_back({static_cast<size_t>(rejected.index()), absl::InvalidArgumentError(rejected.why())});
  }
  return report;
}

absl::Status TrackerRecords::CheckListEnd(const grpc::Status& end) const {
  if (end.error_code() != grpc::StatusCode::CANCELLED) return Annotated(end);
  return absl::CancelledError(name() + " ended the list: nothing of it was read for two minutes (write it to a file " +
                              "first), or your certificate was revoked");
}

absl::StatusOr<std::vector<BestRecord>> TrackerRecords::AllBest(const records::Filter& filter) const {
  grpc::ClientContext context;
  const auto reader = stub_->ListBest(&context, tracker::BestRequestOf(filter));
  std::vector<BestRecord> winners;
  for (v1::BestRecordResponse response; reader->Read(&response);) {
    absl::StatusOr<BestRecord> best = FromProto(response);
    if (!best.ok()) return Annotate(best.status(), name());
    winners.push_back(*std::move(best));
  }
  HONE_RETURN_IF_ERROR(CheckListEnd(reader->Finish()));
  records::SortForDisplay(winners);
  if (winners.size() > filter.limit) winners.resize(filter.limit);
  return winners;
}

absl::StatusOr<int64_t> TrackerRecords::Visit(const records::Filter& filter,
                                              const std::function<absl::Status(const StoredRecord&)>& visit) const {
  if (filter.limit == 0) return 0;  // in the message, 0 means no limit
  grpc::ClientContext context;
  const auto reader = stub_->Export(&context, ToProto(filter));
  for (v1::Record message; reader->Read(&message);) {
    absl::StatusOr<records::Record> record = FromProto(message);
    absl::Status status = record.ok() ? visit({message.row(), *std::move(record)}) : Annotate(record.status(), name());
    if (status.ok()) continue;
    context.TryCancel();
    reader->Finish();
    return status;
  }
  HONE_RETURN_IF_ERROR(CheckListEnd(reader->Finish()));
  return 0;
}

absl::StatusOr<records::Stats> TrackerRecords::Summarize() const {
  HONE_ASSIGN_OR_RETURN(
      const v1::RecordStatsResponse response,
      CallTracker(*stub_, &v1::RecordService::Stub::Stats, v1::RecordStatsRequest(), address_, kCallTimeMax));
  records::Stats stats;
  stats.records = response.records();
  stats.workloads = response.workloads();
  stats.devices = response.devices();
  for (const FailureKind kind : kAllFailureKinds) stats.failed[kind] = 0;
  for (const v1::FailureCount& failed : response.failed()) {
    // A newer tracker may count kinds of failure that this program does not know; they are ignored.
    if (const auto kind = hone::FromProto(failed.kind()); kind.ok()) stats.failed[*kind] = failed.count();
  }
  return stats;
}

}  // namespace hone::cli
