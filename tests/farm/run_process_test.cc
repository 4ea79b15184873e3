// SPDX-License-Identifier: Apache-2.0
// Packages on devices of a farm with real processes: the commands run, bench, profile and gate with --device, an agent
// that is killed, and files that are missing.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/digest.h"
#include "nlohmann/json.hpp"
#include "tests/farm/process_farm.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/runtime/tiny_package.h"
#include "tests/unit/tracker/http/http_client.h"

namespace hone::farm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tests::CommandResult;

class RunProcessTest : public FarmProcessTest {
 protected:
  void SetUp() override {
    package_ = folder_ / "net.hone";
    tests::WriteTinyPackage(package_, tests::TinyContents(tests::CompileTinyKernels()));
    StartTracker();
    Connect();
  }
  // Runs hone with these arguments, and --tracker.
  CommandResult Hone(const std::string& arguments) {
    return tests::RunCommand(fmt::format("{} {} --tracker {}", HONE_BINARY, arguments, address_));
  }
  std::unique_ptr<Process> StartBoard() {
    std::unique_ptr<Process> agent = StartAgent("board");
    EXPECT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
    return agent;
  }
  std::string WriteModel(const std::string& name = "exp.onnx", const graph::Dims& shape = {64, 64}) const {
    graph::GraphBuilder b;
    b.Input("x", shape).Node("Exp", {"x"}, {"y"}).Output("y");
    const std::string model = folder_ / name;
    tests::WriteWholeFile(model, b.Model());
    return model;
  }
  std::vector<v1::Job> Jobs() {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    v1::JobService::NewStub(channel_)->List(&context, v1::ListJobsRequest(), &response);
    return {response.jobs().begin(), response.jobs().end()};
  }
  // A file with an input x of this shape.
  std::string Inputs(const std::string& shape) {
    const std::string path = folder_ / "in.npz";
    const CommandResult made = tests::RunCommand(
        fmt::format("/usr/bin/python3 -c 'import numpy; numpy.savez(\"{0}\", x=numpy.arange(numpy.prod(({1})), "
                    "dtype=numpy.float32).reshape({1}))'",
                    path, shape));
    EXPECT_EQ(made.exit_code, 0) << made.output;
    return path;
  }
  std::filesystem::path package_;
};

TEST_F(RunProcessTest, OutputsOfADeviceAreThoseOfThisMachine) {
  const std::unique_ptr<Process> agent = StartBoard();
  const std::string local = folder_ / "local.npz", remote = folder_ / "remote.npz", inputs = Inputs("4, 8");
  const CommandResult here =
      tests::RunCommand(fmt::format("{} run {} --input {} --output {}", HONE_BINARY, package_.string(), inputs, local));
  ASSERT_EQ(here.exit_code, 0) << here.output;
  const CommandResult there =
      Hone(fmt::format("run {} --input {} --output {} --device board", package_.string(), inputs, remote));
  ASSERT_EQ(there.exit_code, 0) << there.output << agent->Log();
  EXPECT_EQ(tests::ReadWholeFile(local), tests::ReadWholeFile(remote));
}

TEST_F(RunProcessTest, APackageOnADeviceIsComparedWithItsModel) {
  const std::unique_ptr<Process> agent = StartBoard();
  const auto write = [&](const std::string& name, const std::string& op) {
    graph::GraphBuilder b;
    b.Input("x", {2, 3}).Node(op, {"x"}, {"a"}).Node("Softmax", {"a"}, {"y"}).Output("y");
    tests::WriteWholeFile(folder_ / name, b.Model());
    return (folder_ / name).string();
  };
  const std::string neg = write("neg.onnx", "Neg"), abs = write("abs.onnx", "Abs"), made = folder_ / "neg.hone";
  ASSERT_EQ(tests::RunCommand(fmt::format("{} compile {} -o {}", HONE_BINARY, neg, made)).exit_code, 0);
  const CommandResult same = Hone(fmt::format("diff {} {} --device board", neg, made));
  EXPECT_EQ(same.exit_code, 0) << same.output << agent->Log();
  EXPECT_THAT(same.output, HasSubstr("neg.hone on board/cpu beside neg.onnx"));
  EXPECT_THAT(same.output, HasSubstr("1 of 1 kernel calls checked"));
  const CommandResult other = Hone(fmt::format("diff {} {} --device board", abs, made));
  EXPECT_EQ(other.exit_code, 5) << other.output;
  EXPECT_THAT(other.output, HasSubstr("first difference: 'y', computed by node_of_y (Softmax)"));
  const CommandResult checked = Hone(fmt::format("run {} --input {} --output {} --check {} --device board", made,
                                                 Inputs("2, 3"), (folder_ / "out.npz").string(), neg));
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out.npz"));
}

// What the command does in the test before, with HTTP alone.
TEST_F(RunProcessTest, OverHttpARunIsSubmittedAndItsOutputsCome) {
  tracker_->Signal(SIGTERM);
  tracker_->Wait();
  StartTracker("", {"--http", "127.0.0.1:0", "--http-file", folder_ / "url"});
  Connect();
  const std::unique_ptr<Process> agent = StartBoard();
  std::string url;
  std::ifstream(folder_ / "url") >> url;
  tracker::HttpClient client(std::atoi(url.substr(url.rfind(':') + 1).c_str()));
  const std::string key = "Authorization: Bearer " + url.substr(url.find("#key=") + 5) + "\r\n";
  const std::string local = folder_ / "local.npz", inputs = folder_ / "in.npz";
  const CommandResult made =
      tests::RunCommand(fmt::format("/usr/bin/python3 -c 'import numpy; numpy.savez(\"{}\", x=numpy.arange(32, "
                                    "dtype=numpy.float32).reshape(4, 8))' && "
                                    "{} run {} --input {} --output {}",
                                    inputs, HONE_BINARY, package_.string(), inputs, local));
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const auto put = [&](const std::string& path) -> nlohmann::json {
    const std::string contents = tests::ReadWholeFile(path), digest = Sha256Hex(contents);
    const tracker::HttpReply reply = client.Ask("PUT", "/api/v1/files/" + digest + "/contents", key, contents);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return {{"digest", digest}, {"bytes", contents.size()}, {"name", path.substr(path.rfind('/') + 1)}};
  };
  const nlohmann::json run = {
      {"packages", nlohmann::json::array({put(package_)})}, {"inputs", put(inputs)}, {"keep_outputs", true}};
  const nlohmann::json body = {{"name", "net.hone"}, {"devices", nlohmann::json::array({"board"})}, {"run", run}};
  const tracker::HttpReply submitted =
      client.Ask("POST", "/api/v1/jobs", key + "Content-Type: application/json\r\n", body.dump());
  ASSERT_EQ(submitted.status, 200) << submitted.body;
  const std::string id = nlohmann::json::parse(submitted.body).at("job");
  nlohmann::json job;
  ASSERT_TRUE(Eventually([&] {
    job = nlohmann::json::parse(client.Ask("GET", "/api/v1/jobs/" + id, key).body);
    return job.at("state") == "succeeded" || job.at("state") == "failed";
  })) << agent->Log();
  ASSERT_EQ(job.at("error"), "");
  const std::string outputs = job.at("run").at("packages").at(0).at("outputs").at("digest");
  EXPECT_EQ(client.Ask("GET", "/api/v1/files/" + outputs + "/contents", key).body, tests::ReadWholeFile(local));
}

TEST_F(RunProcessTest, BenchAndProfileReportOfADevice) {
  const std::unique_ptr<Process> agent = StartBoard();
  const CommandResult bench = Hone(fmt::format("bench {} --device board --seconds 0.2 --json", package_.string()));
  ASSERT_EQ(bench.exit_code, 0) << bench.output << agent->Log();
  const auto run = nlohmann::json::parse(bench.output.substr(bench.output.find('{'))).at("runs").at(0);
  EXPECT_EQ(run.at("device"), "board/cpu");
  const auto& report = run.at("packages").at(0);
  EXPECT_GT(report.at("median_ms").get<double>(), 0);
  EXPECT_LE(report.at("min_ms").get<double>(), report.at("p99_ms").get<double>());
  EXPECT_GT(report.at("load_ms").get<double>(), 0);
  EXPECT_GT(report.at("peak_memory_bytes").get<double>(), 0);
  const CommandResult profile = Hone(fmt::format("profile {} --device board --seconds 0.2", package_.string()));
  ASSERT_EQ(profile.exit_code, 0) << profile.output;
  EXPECT_THAT(profile.output, HasSubstr("share"));
  EXPECT_EQ(Stats().records(), 0) << "a run is no measurement of a kernel";
}

TEST_F(RunProcessTest, AModelIsCompiledForTheDeviceWithTheRecordsOfTheFarm) {
  const std::unique_ptr<Process> agent = StartBoard();
  const std::string model = WriteModel();
  const CommandResult untuned = Hone(fmt::format("bench {} --device board --seconds 0.1", model));
  ASSERT_EQ(untuned.exit_code, 0) << untuned.output << agent->Log();
  EXPECT_THAT(untuned.output, HasSubstr("exp.hone on board/cpu: min "));
  EXPECT_THAT(untuned.output, HasSubstr("none of the records is for " + model));
  const std::unique_ptr<Process> tuner = StartTuner();
  const CommandResult tune = Hone(fmt::format("tune {} --device board --trials 2", model));
  ASSERT_EQ(tune.exit_code, 0) << tune.output << tuner->Log();
  const CommandResult tuned = Hone(fmt::format("bench {} --device board --seconds 0.1", model));
  EXPECT_EQ(tuned.exit_code, 0) << tuned.output;
  EXPECT_THAT(tuned.output, Not(HasSubstr("none of the records")));
}

TEST_F(RunProcessTest, ACompareHasARowForEveryDevice) {
  const std::unique_ptr<Process> board = StartBoard();
  ASSERT_TRUE(Eventually([&] { return Devices()[0].health() == v1::DEVICE_HEALTH_GOOD; })) << board->Log();
  const std::unique_ptr<Process> away = StartAgent("away");
  ASSERT_TRUE(Eventually([&] { return Devices().size() == 2; })) << away->Log();
  ASSERT_EQ(Hone("drain away").exit_code, 0);
  const std::string model = WriteModel();
  const std::string open = WriteModel("open.onnx", graph::Dims({graph::Dim("batch"), graph::Dim(int64_t{64})}));
  const CommandResult compared = Hone(
      fmt::format("compare {} --package {} --device board --device away --seconds 0.1 --wait 1 --json", model, open));
  EXPECT_EQ(compared.exit_code, 1) << "a device has not answered";
  EXPECT_THAT(compared.output, HasSubstr("no answer of away/cpu"));
  const size_t begin = compared.output.find("{\n"), end = compared.output.rfind("}\n");
  ASSERT_NE(begin, std::string::npos) << compared.output;
  const auto rows = nlohmann::json::parse(compared.output.substr(begin, end + 1 - begin)).at("rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].at("device"), "board/cpu");
  EXPECT_EQ(rows[0].at("package"), "exp.onnx");
  EXPECT_EQ(rows[0].at("state"), "answered");
  EXPECT_EQ(rows[0].at("fastest"), true);
  EXPECT_GT(rows[0].at("median_ms").get<double>(), 0);
  EXPECT_GT(rows[0].at("peak_memory_bytes").get<double>(), 0);
  EXPECT_GT(rows[0].at("roofline_share").get<double>(), 0);
  EXPECT_EQ(rows[1].at("package"), "open.onnx");
  EXPECT_TRUE(rows[1].at("roofline_share").is_null());
  EXPECT_THAT(rows[1].at("roofline_unknown").get<std::string>(), HasSubstr("does not state the work of its kernel"));
  EXPECT_EQ(rows[2].at("device"), "away/cpu");
  EXPECT_EQ(rows[2].at("state"), "waiting");
  EXPECT_THAT(rows[2].at("reason").get<std::string>(), HasSubstr("away/cpu, which is drained"));
  EXPECT_TRUE(rows[3].at("median_ms").is_null());
  for (const v1::Job& job : Jobs()) EXPECT_NE(job.state(), v1::JOB_STATE_QUEUED) << "nothing is left behind";
}

TEST_F(RunProcessTest, AGateOfAPackageAgainstItselfPasses) {
  const std::unique_ptr<Process> agent = StartBoard();
  const CommandResult gate =
      Hone(fmt::format("gate {0} --baseline {0} --device board --seconds 1 --slower-than 20%", package_.string()));
  EXPECT_EQ(gate.exit_code, 0) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("passed on board/cpu: net.hone is"));
}

TEST_F(RunProcessTest, AWatchIsMeasuredAndSurvivesItsTracker) {
  std::unique_ptr<Process> agent = StartBoard();
  EXPECT_THAT(Hone("watch-fleet").output, HasSubstr("watches no package yet; add one: hone watch-fleet add"));
  const CommandResult added = Hone(
      fmt::format("watch-fleet add nightly {} --device board --seconds 0.2 --slower-than 900%", package_.string()));
  ASSERT_EQ(added.exit_code, 0) << added.output;
  EXPECT_THAT(added.output, HasSubstr("not measured yet"));
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  agent->Signal(SIGKILL);
  agent->Wait();
  StartTracker();
  Connect();
  agent = StartAgent("board");
  ASSERT_EQ(Hone("watch-fleet run nightly").exit_code, 0);
  nlohmann::json row;
  const auto is_measured = [&](size_t nights) {
    const CommandResult shown = Hone("watch-fleet show nightly --json");
    row = nlohmann::json::parse(shown.output.substr(shown.output.find('{'))).at("devices").at(0);
    return row.at("nights").size() == nights;
  };
  ASSERT_TRUE(Eventually([&] { return is_measured(1); })) << agent->Log() << tracker_->Log();
  EXPECT_EQ(row.at("device"), "board/cpu");
  EXPECT_EQ(row.at("verdict"), "ok");
  EXPECT_GT(row.at("median_ms").get<double>(), 0);
  EXPECT_NE(row.at("nights")[0].at("environment").at("kernel"), "");
  EXPECT_NE(row.at("nights")[0].at("environment").at("agent"), "");
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  StartTracker();
  Connect();
  ASSERT_TRUE(is_measured(1)) << "the night survives";
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  ASSERT_EQ(Hone("watch-fleet run nightly").exit_code, 0);
  ASSERT_TRUE(Eventually([&] { return is_measured(2); })) << agent->Log() << tracker_->Log();
  EXPECT_FALSE(row.at("change").is_null());
  const CommandResult table = Hone("watch-fleet");
  EXPECT_THAT(table.output, HasSubstr("nightly"));
  EXPECT_THAT(table.output, HasSubstr("board/cpu"));
  EXPECT_EQ(Hone("watch-fleet remove nightly").exit_code, 0);
  const CommandResult gone = Hone("watch-fleet show nightly");
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.output, HasSubstr("there is no watch 'nightly'"));
}

TEST_F(RunProcessTest, ARunSurvivesItsAgentAndItsTracker) {
  std::unique_ptr<Process> agent = StartBoard();
  Process command({HONE_BINARY, "bench", package_, "--device", "board", "--seconds", "5", "--tracker", address_},
                  folder_ / "command.log");
  ASSERT_TRUE(Eventually([&] { return Measuring(); })) << command.Log() << agent->Log();
  agent->Signal(SIGKILL);
  agent->Wait();
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  StartTracker();
  Connect();
  agent = StartAgent("board");
  EXPECT_EQ(command.Wait(), 0) << command.Log() << agent->Log() << tracker_->Log();
  EXPECT_THAT(command.Log(), HasSubstr("net.hone on board/cpu: min "));
}

TEST_F(RunProcessTest, ADamagedPackageIsRefusedByNameAndHarmsNoDevice) {
  const std::unique_ptr<Process> agent = StartBoard();
  std::string bytes = tests::ReadWholeFile(package_);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  tests::WriteWholeFile(package_, bytes);
  const CommandResult bench = Hone(fmt::format("bench {} --device board --seconds 0.2", package_.string()));
  EXPECT_EQ(bench.exit_code, 1);
  EXPECT_THAT(bench.output, HasSubstr("net.hone"));
  EXPECT_EQ(Devices()[0].record().troubles(), 0);
}

TEST_F(RunProcessTest, WrongUsesAreToldAtOnce) {
  const CommandResult unknown = Hone(fmt::format("bench {} --device nobody", package_.string()));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.output, HasSubstr("--device nobody: the farm has no device with that name or label"));
  EXPECT_TRUE(Jobs().empty());
  const CommandResult missing = Hone(fmt::format("bench {}x --device board", package_.string()));
  EXPECT_NE(missing.exit_code, 0);
}

TEST_F(RunProcessTest, CtrlCCancelsTheRun) {
  const std::unique_ptr<Process> agent = StartBoard();
  Process command({HONE_BINARY, "bench", package_, "--device", "board", "--seconds", "100", "--tracker", address_},
                  folder_ / "command.log");
  ASSERT_TRUE(Eventually([&] { return Measuring(); })) << command.Log();
  command.Signal(SIGINT);
  EXPECT_NE(command.Wait(), 0);
  ASSERT_TRUE(Eventually([&] { return !Measuring(); }));
  EXPECT_EQ(Jobs().at(0).state(), v1::JOB_STATE_CANCELLED);
}

}  // namespace
}  // namespace hone::farm
