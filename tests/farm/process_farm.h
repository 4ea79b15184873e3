// SPDX-License-Identifier: Apache-2.0
// Fixture of a farm of real processes; the test itself acts as tuner and client.
#ifndef HONE_TESTS_FARM_PROCESS_FARM_H_
#define HONE_TESTS_FARM_PROCESS_FARM_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tests/farm/builders.h"
#include "tests/farm/processes.h"
#include "tests/unit/device_agent/hand_made_kernels.h"
#include "transport/transport.h"

namespace hone::farm {

class FarmProcessTest : public testing::Test {
 protected:
  // Starts a tracker on a unix socket, or on the address `listen`, and waits until its port file is there.
  void StartTracker(const std::string& listen = "", const std::vector<std::string>& more = {}) {
    std::remove((folder_ / "port").c_str());
    const std::string socket = "unix:" + (folder_ / "socket").string(), address = listen.empty() ? socket : listen;
    std::vector<std::string> arguments = {HONE_TRACKER_BINARY, "--listen",      address, "--records", records_,
                                          "--port-file",       folder_ / "port"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    tracker_ = std::make_unique<Process>(arguments, folder_ / "tracker.log");
    ASSERT_TRUE(Eventually([&] { return std::ifstream(folder_ / "port").good() || !tracker_->Running(); }));
    std::ifstream(folder_ / "port") >> address_;
    ASSERT_FALSE(address_.empty()) << tracker_->Log();
  }
  void Connect(const TlsFiles& tls = {}) { channel_ = OpenChannel(address_, tls).value(); }
  // Starts an agent. through: a program with arguments that runs the agent as its own command; empty means directly.
  std::unique_ptr<Process> StartAgent(const std::string& name = "test", const std::vector<std::string>& more = {},
                                      const std::vector<std::string>& through = {}) {
    std::vector<std::string> arguments = through;
    arguments.insert(arguments.end(), {HONE_AGENT_BINARY, "--tracker", address_, "--threads", "2"});
    if (!name.empty()) arguments.insert(arguments.end(), {"--name", name});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(arguments, folder_ / "agent.log");
  }
  std::unique_ptr<Process> StartTuner(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {HONE_TUNER_BINARY, "--tracker", address_, "--build-workers", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(arguments, folder_ / "tuner.log");
  }
  // Submits a job as a client does. Returns the job as the tracker accepted it.
  v1::Job SubmitJob(const v1::JobSpec& spec) {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    v1::Job job;
    const grpc::Status status = v1::JobService::NewStub(channel_)->Submit(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  v1::Job GetJob(const std::string& id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::Job job;
    const grpc::Status status = v1::JobService::NewStub(channel_)->Get(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  // Submits a job for the hand-made kernels as a client, and leases it as a tuner.
  void LeaseNewJob(const std::string& name) {
    // Registering may take a slow or instrumented agent longer than a job's lease lasts.
    ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << "no agent has registered";
    v1::JobSpec spec = tracker::SpecOf(name);
    tracker::SetWorkload(*spec.mutable_workloads(0), agent::HandMadeBatch({}).workload());
    job_ = SubmitJob(spec);
    grpc::ClientContext lease_context;
    v1::LeaseJobRequest lease;
    lease.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease.set_tuner_id("tuner");
    lease.mutable_max_wait()->set_seconds(5);
    v1::LeaseJobResponse response;
    ASSERT_TRUE(v1::TunerService::NewStub(channel_)->LeaseJob(&lease_context, lease, &response).ok());
    ASSERT_EQ(response.job().id(), job_.id());
    lease_ = response.lease();
  }
  std::string Submit(const v1::Batch& batch, const std::string& id) {
    grpc::ClientContext context;
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = lease_;
    request.set_client_batch_id(id);
    *request.mutable_batch() = batch;
    v1::SubmitBatchResponse response;
    const grpc::Status status = v1::TunerService::NewStub(channel_)->SubmitBatch(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.batch_id();
  }
  v1::BatchResult Wait(const std::string& batch_id) {
    for (int i = 0; i < 10; ++i) {
      grpc::ClientContext context;
      v1::WaitBatchRequest request;
      *request.mutable_lease() = lease_;
      request.add_batch_ids(batch_id);
      request.mutable_max_wait()->set_seconds(5);
      v1::WaitBatchResponse response;
      const grpc::Status status = v1::TunerService::NewStub(channel_)->WaitBatch(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (!status.ok()) break;
      if (response.finished_size() == 1) return response.finished(0).result();
    }
    ADD_FAILURE() << "batch " << batch_id << " was not finished";
    return {};
  }
  std::map<std::string, v1::Outcome> Measure(const std::vector<std::string>& symbols, const std::string& id) {
    const v1::BatchResult result = Wait(Submit(agent::HandMadeBatch(symbols), id));
    EXPECT_EQ(result.error(), "");
    std::map<std::string, v1::Outcome> outcomes;
    for (const v1::CandidateOutcome& outcome : result.outcomes()) outcomes[outcome.candidate_id()] = outcome.outcome();
    return outcomes;
  }
  std::vector<v1::Device> Devices() {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    v1::AdminService::NewStub(channel_)->ListDevices(&context, v1::ListDevicesRequest(), &response);
    return {response.devices().begin(), response.devices().end()};
  }
  v1::RecordStatsResponse Stats() {
    grpc::ClientContext context;
    v1::RecordStatsResponse response;
    const grpc::Status status =
        v1::RecordService::NewStub(channel_)->Stats(&context, v1::RecordStatsRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::GetFarmResponse Counters() {
    grpc::ClientContext context;
    v1::GetFarmResponse response;
    v1::AdminService::NewStub(channel_)->GetFarm(&context, v1::GetFarmRequest(), &response);
    return response;
  }
  bool Measuring() {
    const std::vector<v1::Device> devices = Devices();
    return !devices.empty() && devices[0].activity() == v1::DEVICE_ACTIVITY_MEASURING;
  }
  // Returns a batch that keeps the device busy for about `seconds`: its last candidate hangs until its timeout.
  static v1::Batch LongBatch(double seconds) {
    v1::Batch batch = agent::HandMadeBatch({"good", "hang"});
    batch.mutable_policy()->set_timeout_seconds(seconds / 2);
    return batch;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::filesystem::path records_ = folder_ / "records";
  std::unique_ptr<Process> tracker_;
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  v1::Job job_;
  v1::JobLease lease_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_FARM_PROCESS_FARM_H_
