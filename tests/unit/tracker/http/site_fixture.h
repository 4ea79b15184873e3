// A tracker of one user without sockets, for tests of what its HTTP side answers.
#ifndef HONE_TESTS_UNIT_TRACKER_HTTP_SITE_FIXTURE_H_
#define HONE_TESTS_UNIT_TRACKER_HTTP_SITE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "tests/farm/builders.h"
#include "tracker/held_call.h"
#include "tracker/http/site.h"

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
  // An agent says that it is there.
  void Register(const std::string& name) {
    v1::SynchronizeRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_agent_id(name);
    request.set_boot_id("boot");
    request.set_sequence(1);
    *request.add_devices() = DeviceOf();
    const auto answer = Await<v1::SynchronizeResponse>([&](Done<v1::SynchronizeResponse> done) {
      shell_->Synchronize(request, [] { return true; }, std::move(done));
    });
    EXPECT_TRUE(answer.ok()) << answer.status();
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<records::Store> store_ =
      records::Store::Open(folder_ / "records.db", records::OpenMode::kReadWrite).value();
  const std::unique_ptr<Shell> shell_ =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  const Visitors visitors_{nullptr, nullptr, "secret", {"localhost"}};
  const Site site_{Sources{.shell = shell_.get(), .store = store_.get(), .visitors = &visitors_}};
};

}  // namespace hone::tracker

#endif  // HONE_TESTS_UNIT_TRACKER_HTTP_SITE_FIXTURE_H_
