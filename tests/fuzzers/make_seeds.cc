// SPDX-License-Identifier: Apache-2.0
// hone-make-fuzzer-seeds OUTDIR: what the fuzzers of messages, state and records begin with: sessions as they go.
#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "hone/v1/record.pb.h"
#include "pki/certificates.h"
#include "records/jsonl.h"
#include "tests/farm/builders.h"
#include "tests/fuzzers/pieces.h"
#include "tests/fuzzers/session.h"
#include "tests/unit/records/sample_records.h"
#include "tracker/queue/farm.h"

namespace hone::fuzzers {
namespace {

void Write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// Writes down what an agent, a tuner and a client say to a farm that answers them.
class Recorder {
 public:
  v1::SynchronizeResponse Synchronize(const google::protobuf::RepeatedPtrField<v1::Lease>& finished) {
    v1::SynchronizeRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_agent_id("agent");
    request.set_boot_id("boot");
    request.set_epoch(epoch_);
    request.set_sequence(++sequence_);
    v1::DeviceState* const device = request.add_devices();
    device->set_device_id("cpu");
    device->set_threads(4);
    device->mutable_fingerprint()->set_digest("f");
    device->mutable_fingerprint()->set_text("board");
    device->mutable_fingerprint()->set_architecture("x86_64");
    device->mutable_self_test()->set_passed(true);
    device->mutable_golden()->set_passed(true);
    device->mutable_golden()->set_number(1);
    device->mutable_golden()->set_median_seconds(1e-3);
    for (const v1::Lease& lease : finished) {
      v1::LeaseResult* const result = request.add_finished();
      *result->mutable_lease() = lease.reference();
      for (const v1::Candidate& candidate : lease.batch().candidates()) {
        v1::CandidateOutcome* const outcome = result->mutable_result()->add_outcomes();
        outcome->set_candidate_id(candidate.id());
        outcome->mutable_outcome()->mutable_timing()->add_seconds(1e-3);
      }
    }
    const auto answer = Said(Call::kSynchronize, request, farm_.Synchronize(request, kNow));
    epoch_ = answer.response.epoch();
    return answer.response;
  }

  v1::Job Submit(const std::string& name) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = tracker::SpecOf(name);
    return Said(Call::kSubmitJob, request, farm_.SubmitJob(request.spec(), kNow));
  }

  v1::JobLease Lease() {
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id("tuner");
    request.set_boot_id("boot");
    return Said(Call::kLeaseJob, request, farm_.LeaseJob(request, kNow)).lease();
  }

  std::string Measure(const v1::JobLease& lease) {
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = lease;
    request.set_client_batch_id("b");
    *request.mutable_batch() = tracker::BatchOf(2);
    return Said(Call::kSubmitBatch, request, farm_.SubmitBatch(request, kNow)).batch_id();
  }

  void Finish(const v1::JobLease& lease, const std::string& batch) {
    v1::WaitBatchRequest wait;
    *wait.mutable_lease() = lease;
    wait.add_batch_ids(batch);
    HONE_CHECK(Said(Call::kWaitBatch, wait, farm_.WaitBatch(wait, kNow)).finished_size() == 1);
    v1::CompleteJobRequest complete;
    *complete.mutable_lease() = lease;
    pieces_.push_back(PieceOf(Call::kCompleteJob, complete.SerializeAsString()));
    HONE_CHECK(farm_.CompleteJob(complete, kNow).ok());
  }

  std::string Session() const { return Join(pieces_); }

 private:
  const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24 * 365 * 50);

  template <typename Request, typename Response>
  Response Said(Call call, const Request& request, const absl::StatusOr<Response>& response) {
    pieces_.push_back(PieceOf(call, request.SerializeAsString()));
    return response.value();
  }

  tracker::Farm farm_{tracker::FarmOptions(), 1, tracker::CountingIds(), "key"};  // as the fuzzer's
  std::vector<std::string> pieces_;
  uint64_t epoch_ = 0, sequence_ = 0;
};

void WriteSessions(const std::filesystem::path& folder) {
  Recorder recorder;
  recorder.Synchronize({});
  recorder.Submit("a");
  const v1::JobLease job = recorder.Lease();
  const std::string batch = recorder.Measure(job);
  const v1::SynchronizeResponse work = recorder.Synchronize({});
  HONE_CHECK(work.leases_size() == 1);
  Write(folder / "measuring", recorder.Session());
  recorder.Synchronize(work.leases());
  recorder.Finish(job, batch);
  Write(folder / "whole", recorder.Session());
  v1::AppendRecordsRequest append;
  v1::Record* const record = append.add_records();
  record->mutable_key()->set_workload_digest("d");
  record->mutable_outcome()->mutable_timing()->add_seconds(1);
  Write(folder / "records", PieceOf(Call::kAppendRecords, append.SerializeAsString()));
}

void WriteState(const std::filesystem::path& folder) {
  v1::Job job;
  job.set_id("job0");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_attempts(2);
  v1::HealthRecord health;
  health.set_troubles(2);
  const std::string spec = tracker::SpecOf("a").SerializeAsString(), state = job.SerializeAsString();
  Write(folder / "rows", Join({spec, state, spec, state, health.SerializeAsString(), ""}));
}

void WriteRecords(const std::filesystem::path& folder) {
  Write(folder / "timing", records::RecordToJson(records::SampleTiming(1, "split i 4", 1e-3)));
  const auto kind = FailureKind::kCrashed;
  Write(folder / "failure", records::RecordToJson(records::SampleFailure(2, "split i 4", kind)));
}

}  // namespace
}  // namespace hone::fuzzers

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  hone::fuzzers::WriteSessions(folder / "farm");
  hone::fuzzers::WriteState(folder / "state");
  hone::fuzzers::WriteRecords(folder / "record");
  hone::fuzzers::Write(folder / "http" / "target", "/api/v1/jobs/j%201?limit=10&after=a+b%2f");
  hone::fuzzers::Write(folder / "http" / "cookie", "other=1; __Host-hone=MIIB.0123");
  hone::fuzzers::Write(folder / "http" / "host", "[::1]:9191");
  hone::fuzzers::Write(folder / "request" / "good", hone::pki::MakeRequest(hone::pki::MakeKey()).value());
}
