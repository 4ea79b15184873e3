#include "cli/schedule_lookup.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/version.h"
#include "records/store.h"

namespace hone::cli {
namespace {

using package::RecordedSchedule;

// A schedule made for another target of the same architecture: it may still be better than none.
struct Near {
  std::string target, schedule;
  double seconds = 0;
};

std::string ArchitectureOf(const std::string& target) { return target.substr(0, target.find(' ')); }

size_t CommonPrefix(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The target that agrees with ours longest, then the fastest.
std::vector<RecordedSchedule> Nearest(std::vector<Near> candidates, const std::string& target) {
  std::erase_if(candidates, [&](const Near& n) {
    return n.target == target || ArchitectureOf(n.target) != ArchitectureOf(target);
  });
  const auto best = std::min_element(candidates.begin(), candidates.end(), [&](const Near& a, const Near& b) {
    const size_t common_a = CommonPrefix(a.target, target), common_b = CommonPrefix(b.target, target);
    return common_a != common_b ? common_a > common_b : a.seconds < b.seconds;
  });
  if (best == candidates.end()) return {};
  return {{best->schedule, "measured for " + best->target}};
}

std::vector<RecordedSchedule> InFile(const records::Store& store, const Place& place, const std::string& digest) {
  std::vector<RecordedSchedule> found;
  const records::Key key{digest, place.target, place.device_fingerprint, kCompilerVersion};
  const auto same_target = store.BestAnyDevice(key);
  if (same_target.ok() && same_target->has_value()) {
    const records::NearestRecord& record = **same_target;
    found.push_back({record.best.stored.record.schedule,
                     fmt::format("record {}, {}", record.best.stored.row, records::ClosenessName(record.closeness))});
  }
  const auto winners = store.AllBest({.workload_digest = digest, .limit = SIZE_MAX});
  if (!winners.ok()) return found;
  std::vector<Near> near;
  for (const records::BestRecord& winner : *winners) {
    const records::Record& record = winner.stored.record;
    near.push_back({record.key.target, record.schedule, winner.median_seconds});
  }
  for (RecordedSchedule& schedule : Nearest(std::move(near), place.target)) found.push_back(std::move(schedule));
  return found;
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

absl::StatusOr<v1::BestRecordResponse> BestAt(v1::RecordService::StubInterface& records, const Place& place,
                                              const std::string& digest) {
  v1::BestRecordRequest request;
  request.mutable_key()->set_workload_digest(digest);
  request.mutable_key()->set_target(place.target);
  request.mutable_key()->set_device_fingerprint(place.device_fingerprint);
  request.mutable_key()->set_compiler_version(kCompilerVersion);
  request.set_widest(v1::RECORD_MATCH_SAME_TARGET);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::BestRecordResponse response;
  const grpc::Status status = records.Best(&context, request, &response);
  if (status.ok()) return response;
  return absl::UnavailableError(fmt::format("the tracker does not answer for records: {}", status.error_message()));
}

std::vector<RecordedSchedule> AtTracker(v1::RecordService::StubInterface& records, const Place& place,
                                        const std::string& digest) {
  std::vector<RecordedSchedule> found;
  const absl::StatusOr<v1::BestRecordResponse> best = BestAt(records, place, digest);
  if (best.ok() && best->has_record()) {
    found.push_back({best->record().schedule(), fmt::format("record {}", best->record().row())});
  }
  v1::ListBestRequest request;
  request.mutable_key()->set_workload_digest(digest);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListBestResponse response;
  if (!records.ListBest(&context, request, &response).ok()) return found;
  std::vector<Near> near;
  for (const v1::BestRecordResponse& winner : response.best()) {
    near.push_back({winner.record().key().target(), winner.record().schedule(), winner.median_seconds()});
  }
  for (RecordedSchedule& schedule : Nearest(std::move(near), place.target)) found.push_back(std::move(schedule));
  return found;
}

}  // namespace

absl::StatusOr<package::ScheduleLookup> LookupInFile(const std::filesystem::path& path, const Place& place) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<records::Store> opened,
                        records::Store::Open(path, records::OpenMode::kReadOnly));
  return [store = std::shared_ptr<records::Store>(std::move(opened)), place](const std::string& digest) {
    return InFile(*store, place, digest);
  };
}

absl::StatusOr<package::ScheduleLookup> LookupAtTracker(std::shared_ptr<v1::RecordService::StubInterface> records,
                                                        const Place& place) {
  HONE_RETURN_IF_ERROR(BestAt(*records, place, std::string(64, '0')).status());
  return
      [records = std::move(records), place](const std::string& digest) { return AtTracker(*records, place, digest); };
}

}  // namespace hone::cli
