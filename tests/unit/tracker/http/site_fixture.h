// SPDX-License-Identifier: Apache-2.0
// A single-user tracker without sockets, for tests of its HTTP answers.
#ifndef HONE_TESTS_UNIT_TRACKER_HTTP_SITE_FIXTURE_H_
#define HONE_TESTS_UNIT_TRACKER_HTTP_SITE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "files/file_store.h"
#include "storage/open.h"
#include "tests/farm/builders.h"
#include "tracker/held_call.h"
#include "tracker/http/site.h"

namespace hone {

// The files in tests/unit/tracker/http/pages.
const std::vector<EmbeddedFile>& TestPages();

}  // namespace hone

namespace hone::tracker {

class SiteTest : public testing::Test {
 protected:
  HttpRequest Request(const std::string& method, const std::string& target) const {
    HttpRequest request{.method = method, .target = target, .peer = "127.0.0.1:1"};
    request.headers["host"] = "localhost:1";
    request.headers["authorization"] = "Bearer " + visitors_.key();
    return request;
  }
  HttpResponse Answer(const HttpRequest& request) const { return site_.Answer(request); }
  HttpResponse Get(const std::string& target) const { return Answer(Request("GET", target)); }
  HttpResponse Post(const std::string& target, const std::string& body) const {
    HttpRequest request = Request("POST", target);
    request.headers["content-type"] = "application/json";
    request.body = body;
    return Answer(request);
  }
  HttpResponse Put(const std::string& target, const std::string& body) const {
    HttpRequest request = Request("PUT", target);
    request.body = body;
    return Answer(request);
  }
  Json GetJson(const std::string& target) const {
    const HttpResponse response = Get(target);
    EXPECT_EQ(response.status, 200) << target << ": " << response.body;
    return Json::parse(response.body, nullptr, false);
  }

  std::string SubmitJob(const std::string& name) { return SubmitJob(SpecOf(name)); }
  std::string SubmitJob(const v1::JobSpec& spec) {
    const auto job = Await<v1::Job>([&](Done<v1::Job> done) { shell_->SubmitJob(spec, std::move(done)); });
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->id() : "";
  }
  v1::Job Job(const std::string& id) {
    return Await<v1::Job>([&](Done<v1::Job> done) { shell_->GetJob(id, std::move(done)); }).value();
  }
  // Makes a call of an agent that registers and brings results.
  v1::SynchronizeResponse Synchronize(const std::string& agent, uint64_t sequence, uint64_t epoch = 0,
                                      const std::vector<v1::LeaseResult>& finished = {}) {
    v1::SynchronizeRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_agent_id(agent);
    request.set_boot_id("boot");
    request.set_sequence(sequence);
    request.set_epoch(epoch);
    *request.add_devices() = device_;
    for (const v1::LeaseResult& result : finished) *request.add_finished() = result;
    const auto answer = Await<v1::SynchronizeResponse>([&](Done<v1::SynchronizeResponse> done) {
      shell_->Synchronize(request, [] { return true; }, std::move(done));
    });
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(v1::SynchronizeResponse());
  }
  void Register(const std::string& agent) { Synchronize(agent, 1); }
  // Submits a job "measured" and starts it, with a batch of three candidates that the agent has measured; the last one
  // had wrong output. Returns the job's id.
  std::string Measure(const std::string& agent) {
    v1::JobSpec spec = SpecOf("measured", 0);
    spec.set_priority(1);
    const std::string id = SubmitJob(spec);
    v1::LeaseJobRequest lease_job;
    lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease_job.set_tuner_id("tuner");
    const auto leased = Await<v1::LeaseJobResponse>(
        [&](Done<v1::LeaseJobResponse> done) { shell_->LeaseJob(lease_job, [] { return true; }, std::move(done)); });
    EXPECT_EQ(leased->job().id(), id);
    v1::SubmitBatchRequest submit;
    lease_ = leased->lease();
    *submit.mutable_lease() = lease_;
    submit.set_client_batch_id("first");
    *submit.mutable_batch() = BatchOf(3);
    submit.mutable_batch()->set_op("matmul");
    submit.mutable_batch()->set_flops(2e6);
    submit.mutable_batch()->set_search_seed(~uint64_t{0});
    for (v1::Candidate& candidate : *submit.mutable_batch()->mutable_candidates()) {
      candidate.set_schedule("schedule of " + candidate.id());
      candidate.set_decisions("tile=" + candidate.id().substr(1));
      if (candidate.id() != "c0") candidate.set_predicted_seconds(2e-3);
    }
    EXPECT_TRUE(Await<v1::SubmitBatchResponse>([&](Done<v1::SubmitBatchResponse> done) {
                  shell_->SubmitBatch(submit, done);
                }).ok());
    uint64_t epoch = Synchronize(agent, 1).epoch();
    std::vector<v1::LeaseResult> finished;
    for (uint64_t sequence = 2; sequence < 10; ++sequence) {
      const v1::SynchronizeResponse answer = Synchronize(agent, sequence, epoch, finished);
      if (answer.acked_lease_ids_size() > 0) return id;
      epoch = answer.epoch();
      for (const v1::Lease& lease : answer.leases()) {
        v1::LeaseResult& result = finished.emplace_back();
        *result.mutable_lease() = lease.reference();
        *result.mutable_result() = TimedResult(lease.batch());
        v1::Outcome* last = result.mutable_result()->mutable_outcomes(2)->mutable_outcome();
        last->mutable_failure()->set_kind(v1::FAILURE_KIND_WRONG_OUTPUT);
        last->mutable_failure()->set_text("off by 2");
      }
    }
    ADD_FAILURE() << "nothing was acknowledged";
    return id;
  }

  static FarmOptions Options() {
    FarmOptions options;
    options.jobs.notify_allowed = {"https://hooks.lab/"};
    return options;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<records::Store> store_ =
      storage::OpenRecords(folder_ / "records.db", records::OpenMode::kReadWrite).value();
  const std::unique_ptr<Shell> shell_ =
      Shell::Start(Options(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  const Visitors visitors_{nullptr, nullptr, "secret", {"localhost"}};
  v1::DeviceState device_ = DeviceOf();  // every agent's device
  v1::JobLease lease_;                   // of the job that Measure began
  EventFeed events_{shell_.get(), store_->path()};
  const Pages pages_{TestPages()};
  const std::unique_ptr<files::FileStore> files_ = files::FileStore::Open(folder_ / "files", {}).value();
  const FileRights rights_{shell_.get(), files_.get()};
  const Site site_{ApiContext{.shell = shell_.get(),
                              .store = store_.get(),
                              .visitors = &visitors_,
                              .events = &events_,
                              .pages = &pages_,
                              .file_store = files_.get(),
                              .file_rights = &rights_,
                              .tracker = "unix:/farm/socket"}};
};

}  // namespace hone::tracker

#endif  // HONE_TESTS_UNIT_TRACKER_HTTP_SITE_FIXTURE_H_
