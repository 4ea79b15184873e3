// SPDX-License-Identifier: Apache-2.0
// The messages of a farm, in sessions: what the tracker makes of requests, and agents and tuners of what it hands on.
#include <cstdint>
#include <string_view>

#include "absl/time/time.h"
#include "device_agent/launcher/visit_convert.h"
#include "tests/farm/builders.h"
#include "tests/fuzzers/pieces.h"
#include "tests/fuzzers/session.h"
#include "tracker/convert.h"
#include "tracker/queue/farm.h"
#include "tuner/convert.h"

namespace hone::fuzzers {
namespace {

class Session {
 public:
  void Play(std::string_view piece) {
    if (piece.empty()) return;
    const auto head = static_cast<uint8_t>(piece[0]);
    now_ += absl::Seconds(3) * (head >> 4);
    farm_.Tick(now_);
    Answer(static_cast<Call>(head % 16), piece.substr(1));
    farm_.TakeChangedJobs();
    farm_.TakeForgottenJobs();
    for (const tracker::Recordable& given_up : farm_.TakeGivenUp()) tracker::ToRecords("farm", given_up);
    farm_.TakeChangedHealth();
  }

 private:
  template <typename Request>
  static Request Parsed(std::string_view bytes) {
    Request request;
    request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));  // what could be read of it stays
    return request;
  }

  void Answer(Call call, std::string_view bytes) {
    switch (call) {
      case Call::kSynchronize:
        return Synchronize(Parsed<v1::SynchronizeRequest>(bytes));
      case Call::kSubmitJob:
        return farm_.SubmitJob(Parsed<v1::SubmitJobRequest>(bytes).spec(), now_).status().IgnoreError();
      case Call::kLeaseJob: {
        const auto leased = farm_.LeaseJob(Parsed<v1::LeaseJobRequest>(bytes), now_);
        if (leased.ok() && leased->has_lease()) tuner::FromProto(leased->job());
        return;
      }
      case Call::kReportProgress:
        return farm_.ReportProgress(Parsed<v1::ReportProgressRequest>(bytes), now_).status().IgnoreError();
      case Call::kSubmitBatch:
        return farm_.SubmitBatch(Parsed<v1::SubmitBatchRequest>(bytes), now_).status().IgnoreError();
      case Call::kWaitBatch: {
        const auto waited = farm_.WaitBatch(Parsed<v1::WaitBatchRequest>(bytes), now_);
        if (!waited.ok()) return;
        for (const v1::FinishedBatch& finished : waited->finished()) tuner::FromProto(finished.result());
        return;
      }
      case Call::kCompleteJob:
        return farm_.CompleteJob(Parsed<v1::CompleteJobRequest>(bytes), now_).IgnoreError();
      case Call::kCancelJob:
        return farm_.CancelJob(Parsed<v1::CancelJobRequest>(bytes).job_id(), now_).status().IgnoreError();
      case Call::kWatchJob:
        farm_.ListJobs(v1::ListJobsRequest(), now_);
        farm_.ListDevices({}, now_);
        farm_.Counters(now_);
        return farm_.WatchJob(Parsed<v1::WatchJobRequest>(bytes), now_).status().IgnoreError();
      case Call::kAppendRecords: {
        const auto append = Parsed<v1::AppendRecordsRequest>(bytes);
        for (const v1::Record& record : append.records()) {
          tracker::FromProto(record).status().IgnoreError();
          tuner::FromProto(record);
        }
        return;
      }
      case Call::kQueryRecords:
        tracker::FromProto(Parsed<v1::QueryRecordsRequest>(bytes)).status().IgnoreError();
        return;
      case Call::kCount:
        return;
    }
  }

  void Synchronize(const v1::SynchronizeRequest& request) {
    for (const tracker::Recordable& recordable : farm_.AcceptableResults(request, now_))
      tracker::ToRecords("farm", recordable);
    const auto answer = farm_.Synchronize(request, now_);
    if (!answer.ok()) return;
    for (const v1::Lease& lease : answer->response.leases()) agent::ToVisit(lease.batch()).status().IgnoreError();
    farm_.Offer(request, now_).status().IgnoreError();
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  tracker::Farm farm_{tracker::FarmOptions(), 1, tracker::CountingIds(), "key"};
};

}  // namespace
}  // namespace hone::fuzzers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::fuzzers::Session session;
  for (const std::string_view piece : hone::fuzzers::Pieces({reinterpret_cast<const char*>(data), size})) {
    session.Play(piece);
  }
  return 0;
}
