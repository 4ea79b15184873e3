// SPDX-License-Identifier: Apache-2.0
// Small parts of the commands: random values, statistics of repeated runs, checks of output files, signals, progress,
// lock files, and the display of a certificate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/quantile.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/lock_file.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/record_source.h"
#include "cli/tracker_options.h"
#include "compiler/graph/plan.h"
#include "compiler/target/target.h"
#include "deploy/package/compile_kernels.h"
#include "deploy/run/random_values.h"
#include "deploy/run/timed_runs.h"
#include "deploy/runtime/dtype.h"
#include "pki/tracker_folder.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::cli {
namespace {

using package::DType;
using run::DefaultRange;
using run::FillRandom;
using run::TimeRuns;
using run::ValueRange;

template <typename T>
std::vector<T> Draw(DType dtype, ValueRange range, uint64_t seed = 1) {
  std::vector<T> values(1000);
  Random random(seed);
  FillRandom(dtype, range, random, {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)});
  return values;
}

TEST(OutputTest, OutputMustNotBeAnInput) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string file = folder / "file", link = folder / "link", other = folder / "other";
  std::ofstream(file) << "a model";
  std::filesystem::create_hard_link(file, link);
  for (const std::string& same : {file, link, (folder.path() / "." / "file").string()}) {
    const absl::Status status = CheckNotAnInput(same, {"", other, file});
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("is also an input of this command")) << same;
    EXPECT_TRUE(status.GetPayload(kUsageMark).has_value());
  }
  EXPECT_TRUE(CheckNotAnInput(other, {"", file}).ok());
  EXPECT_TRUE(CheckNotAnInput("/dev/null", {"/dev/null"}).ok());
}

TEST(OutputTest, NamesInErrorsCannotCommandTheTerminal) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(FinishCommand(absl::InternalError("node 'a\x1b[2J\r' fails\nat x\xff")), kWorkFailed);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hone: node 'a?[2J?' fails\nat x\xef\xbf\xbd\n");
}

TEST(OutputTest, NamesInATableCannotEndTheirRow) {
  EXPECT_EQ(Row("{:<5}{}", "a", "b\nj2\tc\x1b[1m\xc2\x9b"), "a    b?j2?c?[1m?\n");
}

TEST(InterruptsTest, SecondCtrlCOrSigtermEndsAtOnce) {
  {
    const Interrupts interrupts;
    EXPECT_FALSE(interrupts.WasInterrupted() || interrupts.MustEndAtOnce());
    raise(SIGINT);
    EXPECT_TRUE(interrupts.WasInterrupted());
    EXPECT_FALSE(interrupts.MustEndAtOnce());
    raise(SIGINT);
    EXPECT_TRUE(interrupts.WasInterrupted() && interrupts.MustEndAtOnce());
  }
  const Interrupts interrupts;
  EXPECT_FALSE(interrupts.WasInterrupted()) << "what came before is over";
  raise(SIGTERM);
  EXPECT_TRUE(interrupts.WasInterrupted() && interrupts.MustEndAtOnce());
}

TEST(ProgressLineTest, PrintsALineEveryTenSecondsWithoutTerminal) {
  absl::Time steady = absl::UnixEpoch();
  testing::internal::CaptureStderr();  // captured before the line is made, so that it sees no terminal
  {
    ProgressLine line([&steady] { return steady; });
    for (int kernel = 1; kernel <= 25; ++kernel, steady += absl::Seconds(1)) line.Show(fmt::format("{} of 25", kernel));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "11 of 25\n21 of 25\n");
}

TEST(ProgressLineTest, PrintsADocumentEverySecondForPrograms) {
  setenv("HONE_PROGRESS", "json", 1);
  absl::Time steady = absl::UnixEpoch();
  testing::internal::CaptureStderr();
  {
    ProgressLine line([&steady] { return steady; });
    for (int step = 0; step <= 5; ++step, steady += absl::Milliseconds(500)) line.Show("a \"step\"\n", 0.2 * step);
    line.Show("no share");
  }
  unsetenv("HONE_PROGRESS");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "{\"progress\":{\"text\":\"a \\\"step\\\"\\n\",\"share\":0.4}}\n"
            "{\"progress\":{\"text\":\"a \\\"step\\\"\\n\",\"share\":0.8}}\n"
            "{\"progress\":{\"text\":\"no share\",\"share\":null}}\n");
}

TEST(ProgressLineTest, EveryKernelThatIsCompiledIsTold) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string model = folder / "two.onnx";
  graph::GraphBuilder b;
  b.Input("x", {3}).Input("z", {5}).Node("Exp", {"x"}, {"y"}).Node("Exp", {"z"}, {"w"}).Output("y").Output("w");
  std::ofstream(model, std::ios::binary) << b.Model();
  const target::Target target = target::ParseTarget("cpu").value();
  const absl::StatusOr<graph::Plan> plan = graph::BuildPlan(model, {}, target);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> told;
  const auto progress = [&told](size_t done, size_t all) { told.push_back(fmt::format("{} of {}", done, all)); };
  const auto kernels =
      package::CompileKernels(plan->workloads, {.target = target, .naive = true, .progress = progress});
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  EXPECT_THAT(told, ::testing::ElementsAre("1 of 2", "2 of 2"));
}

// A lock file with one program of one workload for each target.
std::string LockText(const std::vector<std::string>& targets) {
  std::string programs;
  for (const std::string& target : targets) {
    programs +=
        fmt::format("{}{{\"target\": \"{}\", \"workloads\": [{{\"workload\": \"d1\", \"schedule\": [\"fuse a b\"]}}]}}",
                    programs.empty() ? "" : ",\n", target);
  }
  return fmt::format("{{\"hone_lock\": 1,\n\"compiler\": \"hone\",\n\"programs\": [\n{}]}}\n", programs);
}

TEST(LockFileTest, InformativeFieldsMayBeMissing) {
  const absl::StatusOr<LockFile> lock = ParseLockFile(LockText({"cpu", "board"}), "hone.lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_EQ(lock->programs.size(), 2u);
  EXPECT_EQ(lock->programs[1].target, "board");
  EXPECT_EQ(lock->programs[1].workloads[0].schedule, "fuse a b\n");
  std::string with_record = LockText({"cpu"});
  with_record.replace(with_record.find("\"d1\""), 4, "\"d1\", \"record\": {\"device\": \"board\"}");
  EXPECT_EQ(ParseLockFile(with_record, "hone.lock")->programs[0].workloads[0].record->device, "board");
  with_record.replace(with_record.find("\"board\""), 7, "7");
  EXPECT_TRUE(absl::IsDataLoss(ParseLockFile(with_record, "hone.lock").status()));
}

TEST(LockFileTest, AWorkloadNamesItsTargetIfSeveralShareTheProgram) {
  LockFile lock = {.compiler = "hone", .model = "m.onnx", .programs = {{"opencl + cpu", {}}}};
  lock.programs[0].workloads = {{.digest = "d1", .op = "matmul", .calls = 1, .target = "opencl", .schedule = "a\n"},
                                {.digest = "d2", .op = "softmax", .calls = 1, .target = "cpu", .schedule = "b\n"}};
  const absl::StatusOr<LockFile> read = ParseLockFile(ToText(lock), "hone.lock");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->programs[0].workloads[0].target, "opencl");
  EXPECT_EQ(read->programs[0].workloads[1].target, "cpu");
  lock.programs[0].workloads[0].target.clear();
  lock.programs[0].workloads[1].target.clear();
  const std::string text = ToText(lock);
  EXPECT_EQ(text.find("\"target\""), text.rfind("\"target\"")) << "the program's alone";
  EXPECT_EQ(ParseLockFile(ToText(lock), "hone.lock")->programs[0].workloads[0].target, "");
}

TEST(LockFileTest, MergeConflictMarkersAreReported) {
  const std::string good = LockText({"cpu"});
  std::string conflict = good;
  conflict.insert(conflict.find("\"compiler\""), "<<<<<<< HEAD\n");
  std::string open = good;
  open.replace(open.rfind(']'), 1, "");
  const std::pair<std::string, const char*> cases[] = {
      {conflict, "lock file hone.lock is damaged: it is not JSON: line 2 looks like a merge conflict"},
      {open, "at line 4"},
      {LockText({"cpu", "cpu"}), "hone.lock is damaged: programs[1] is a second one for target cpu"},
  };
  for (const auto& [text, why] : cases) {
    const absl::Status status = ParseLockFile(text, "hone.lock").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(why));
  }
}

// Deeply nested lists must not overflow the stack of the reader.
TEST(LockFileTest, DeepListsAreDamage) {
  constexpr size_t kDepth = 1'000'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']'), good = LockText({"cpu"});
  EXPECT_TRUE(absl::IsDataLoss(ParseLockFile(std::string(kDepth, '['), "hone.lock").status()));
  for (const char* name : {"\"programs\": ", "\"workloads\": ", "\"schedule\": "}) {
    std::string text = good;
    text.insert(good.find(name) + std::string_view(name).size(), deep + ", \"of before\": ");
    EXPECT_TRUE(absl::IsDataLoss(ParseLockFile(text, "hone.lock").status())) << name;
  }
}

// The tracker that a command takes which has --tracker and --records, run with `line` while HONE_TRACKER is `variable`.
std::string TrackerOf(const std::string& line, const char* variable) {
  setenv("HONE_TRACKER", variable, 1);
  RecordSourceOptions source;
  CLI::App app;
  CLI::App* command = app.add_subcommand("x");
  source.AddTo(command);
  app.parse(line);
  unsetenv("HONE_TRACKER");
  return source.tracker.address;
}

TEST(TrackerOptionsTest, TheVariableNamesTheTrackerUnlessTheCommandLineNamesAPlace) {
  EXPECT_EQ(TrackerOf("x", "unix:/v"), "unix:/v");
  EXPECT_EQ(TrackerOf("x --tracker h:1", "unix:/v"), "h:1");
  EXPECT_EQ(TrackerOf("x --records r.db", "unix:/v"), "");
  EXPECT_EQ(TrackerOf("x", ""), "");
}

TEST(TrackerOptionsTest, ExpiredCertificateIsAnErrorAndExpiringOneAWarning) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto options_of = [&](const std::string& name, int days_left) {
    const absl::Time issued = absl::Now() - absl::Hours(24 * (365 - days_left));
    const auto farm = pki::Authority::Make({issued, issued + absl::Hours(24 * 999)}).value();
    EXPECT_TRUE(pki::IssueIdentity(farm, folder / name, {Role::kClient, name}, "localhost:1", issued).ok());
    return TrackerOptions{.address = "localhost:1", .identity = folder / name};
  };
  const absl::Status ended = options_of("old", -1).Connect().status();
  EXPECT_THAT(std::string(ended.message()), ::testing::HasSubstr("hone join"));
  TrackerOptions ending = options_of("ann", 9);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(options_of("new", 300).Connect().ok());
  EXPECT_TRUE(ending.Connect().ok());
  EXPECT_TRUE(ending.Connect().ok());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::StartsWith("warning: the certificate in " + (folder / "ann").string()));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST(RandomValuesTest, FloatsStayInTheirRange) {
  for (const float v : Draw<float>(DType::kFloat32, {-1, 1})) EXPECT_TRUE(v >= -1 && v <= 1) << v;
  for (const double v : Draw<double>(DType::kFloat64, {3, 4})) EXPECT_TRUE(v >= 3 && v < 4) << v;
  const std::vector<float> values = Draw<float>(DType::kFloat32, {-1, 1});
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.9f);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.9f);
}

TEST(RandomValuesTest, HalfFloatsAreTheRightBits) {
  for (const uint16_t bits : Draw<uint16_t>(DType::kFloat16, {1, 2})) EXPECT_EQ(bits >> 10, 15) << bits;
  for (const uint16_t bits : Draw<uint16_t>(DType::kFloat16, {-4, -2})) EXPECT_EQ(bits >> 10, 32 + 16) << bits;
  for (const uint16_t bits : Draw<uint16_t>(DType::kFloat16, {1e9, 2e9})) EXPECT_EQ(bits, 0x7bff);
  for (const uint16_t bits : Draw<uint16_t>(DType::kFloat16, {1e-9, 2e-9})) EXPECT_EQ(bits, 0);
  for (const uint16_t bits : Draw<uint16_t>(DType::kBFloat16, {1, 2})) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    EXPECT_TRUE(value >= 1 && value < 2) << value;
  }
}

TEST(RandomValuesTest, IntegersTakeEveryWholeNumberOfTheirRange) {
  const std::vector<int32_t> values = Draw<int32_t>(DType::kInt32, {-2.5, 2.5});
  EXPECT_THAT(std::set<int32_t>(values.begin(), values.end()), ::testing::ElementsAre(-2, -1, 0, 1, 2));
  const std::vector<int64_t> bits = Draw<int64_t>(DType::kInt64, DefaultRange(DType::kInt64));
  EXPECT_THAT(std::set<int64_t>(bits.begin(), bits.end()), ::testing::ElementsAre(0, 1));
  const std::vector<uint8_t> truths = Draw<uint8_t>(DType::kBool, {0, 100});
  EXPECT_THAT(std::set<uint8_t>(truths.begin(), truths.end()), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(Draw<int8_t>(DType::kInt8, {7, 7}), ::testing::Each(7));
}

TEST(RandomValuesTest, TheSeedDecides) {
  EXPECT_EQ(Draw<float>(DType::kFloat32, {-1, 1}, 5), Draw<float>(DType::kFloat32, {-1, 1}, 5));
  EXPECT_NE(Draw<float>(DType::kFloat32, {-1, 1}, 5), Draw<float>(DType::kFloat32, {-1, 1}, 6));
}

TEST(TimedRunsTest, RunsAtLeastThreeTimesAfterAWarmUp) {
  int runs = 0;
  const absl::StatusOr<std::vector<double>> times = TimeRuns(0, [&] {
    ++runs;
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(times->size(), 3u);
  EXPECT_EQ(runs, 4);
}

TEST(TimedRunsTest, StopsAtTheFirstFailure) {
  int runs = 0;
  const auto times = TimeRuns(10, [&] { return ++runs == 3 ? absl::InternalError("no") : absl::OkStatus(); });
  EXPECT_EQ(times.status().message(), "no");
  EXPECT_EQ(runs, 3);
}

TEST(TimedRunsTest, QuantilesAreValuesOfTheSample) {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(Quantile(values, 0), 1);
  EXPECT_EQ(Quantile(values, 0.5), 3);
  EXPECT_EQ(Quantile(values, 0.9), 5);
  EXPECT_EQ(Quantile(values, 1), 5);
  EXPECT_EQ(Quantile(std::vector<double>{7}, 0.9), 7);
}

}  // namespace
}  // namespace hone::cli
