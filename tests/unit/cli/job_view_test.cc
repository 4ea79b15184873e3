// SPDX-License-Identifier: Apache-2.0
// The display of running jobs: the picture that fits a screen, the line, the time left, and the bytes sent to a
// terminal.
#include "cli/job_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "cli/job_text.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "tracker/job_json.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

void AddWorkload(v1::Job& job, const std::string& name, int64_t count, double untuned_ms, double best_ms) {
  v1::WorkloadSpec* spec = job.mutable_spec()->add_workloads();
  spec->set_op(name);
  if (name == "conv2d") spec->set_title("conv2d 14x14x256 (3x3x256)");
  spec->set_count(count);
  v1::WorkloadProgress* progress = job.mutable_progress()->add_workloads();
  if (best_ms == 0) return;
  progress->set_trials(40);
  progress->set_default_seconds(untuned_ms * 1e-3);
  progress->set_best_seconds(best_ms * 1e-3);
  progress->set_roofline_share(0.5);
}

v1::WatchJobResponse Running(std::string id = "j1") {
  v1::WatchJobResponse heard;
  v1::Job& job = *heard.mutable_job();
  job.set_id(std::move(id));
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_spec()->set_name("net.onnx");
  job.mutable_spec()->set_target("arm64 -mcpu=cortex-a72");
  job.mutable_progress()->set_trials(100);
  job.mutable_progress()->set_trials_per_second(4);
  job.mutable_progress()->set_seconds(25);
  job.mutable_progress()->set_activity("measuring conv2d");
  v1::FailureCount* failed = job.mutable_progress()->add_failed();
  failed->set_kind(v1::FAILURE_KIND_CRASHED);
  failed->set_count(10);
  AddWorkload(job, "pool", 1, 1, 0.5);
  AddWorkload(job, "conv2d", 4, 2, 0.5);
  AddWorkload(job, "gemm", 1, 0, 0);
  return heard;
}

using tracker::TimeLeft;

TEST(TimeLeftTest, IsTheSmallestLimit) {
  v1::Job job = Running().job();
  EXPECT_EQ(TimeLeft(job, kNow), std::nullopt);
  job.mutable_spec()->mutable_until()->set_seconds(absl::ToUnixSeconds(kNow) + 3600);
  EXPECT_EQ(TimeLeft(job, kNow), absl::Hours(1));
  job.mutable_spec()->mutable_time_budget()->set_seconds(85);
  EXPECT_EQ(TimeLeft(job, kNow), absl::Seconds(60));
  job.mutable_spec()->set_trials(140);
  EXPECT_EQ(TimeLeft(job, kNow), absl::Seconds(10));
  EXPECT_EQ(TimeLeft(job, kNow + absl::Hours(2)), absl::ZeroDuration()) << "it is only ending";
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(TimeLeft(job, kNow), std::nullopt);
}

TEST(TimeLeftTest, TrialLimitNeedsAMeasuredRate) {
  v1::Job job = Running().job();
  job.mutable_spec()->set_trials(1000);
  job.mutable_progress()->set_trials_per_second(0);
  EXPECT_EQ(TimeLeft(job, kNow), std::nullopt);
}

TEST(TimeLeftTest, TheClockOfAJobWithoutADeviceStandsStill) {
  v1::Job job = Running().job();
  job.mutable_spec()->mutable_time_budget()->set_seconds(85);
  job.set_waiting_for("a device for room=lab");
  EXPECT_EQ(TimeLeft(job, kNow), absl::Seconds(60)) << "it still measures";
  job.mutable_progress()->set_trials_per_second(0);
  EXPECT_EQ(TimeLeft(job, kNow), std::nullopt);
  job.mutable_spec()->mutable_until()->set_seconds(absl::ToUnixSeconds(kNow) + 3600);
  EXPECT_EQ(TimeLeft(job, kNow), absl::Hours(1)) << "that instant comes";
}

TEST(PictureTest, ShowsJobAndWorkloadsByShareOfTime) {
  v1::WatchJobResponse heard = Running();
  heard.mutable_job()->mutable_progress()->set_latency_before_seconds(0.012);
  heard.mutable_job()->mutable_progress()->set_latency_after_seconds(0.003);
  const std::vector<std::string> lines = Picture({heard}, {.columns = 100, .rows = 24}, kNow);
  ASSERT_THAT(lines, SizeIs(7));
  EXPECT_EQ(lines[0], "j1  net.onnx for arm64 -mcpu=cortex-a72: running, 0:25");
  EXPECT_EQ(lines[1],
            "  provisional: best 3.00 ms, untuned 12.0 ms, 4.00x; 100 trials, 4.0/s, 10% failed (10 crashed)");
  EXPECT_EQ(lines[2], "  measuring conv2d");
  EXPECT_THAT(lines[3], EndsWith("workload"));
  EXPECT_THAT(lines[4], AllOf(HasSubstr("80.0%"), HasSubstr("x4"), HasSubstr("4.00x"), HasSubstr("2.00 ms      500 us"),
                              EndsWith("50%  conv2d 14x14x256 (3x3x256)")));
  EXPECT_THAT(lines[5], AllOf(HasSubstr("20.0%"), HasSubstr("2.00x"), EndsWith("pool")));
  EXPECT_THAT(lines[6], AllOf(Not(HasSubstr("%")), EndsWith("-  gemm")));
}

TEST(PictureTest, FitsTheScreen) {
  v1::WatchJobResponse large = Running();
  for (int i = 0; i < 100; ++i) AddWorkload(*large.mutable_job(), "conv2d with a long name", 1, 1, 0.5);
  for (const size_t jobs : {1, 2, 9, 40}) {
    for (const size_t rows : {1, 2, 3, 5, 8, 24, 50}) {
      for (const size_t columns : {1, 20, 79}) {
        const std::vector<std::string> lines = Picture(std::vector(jobs, large), {columns, rows}, kNow);
        EXPECT_LE(lines.size(), std::max<size_t>(rows, 2) - 1) << jobs << " jobs, " << rows << " rows";
        EXPECT_THAT(lines, Each(SizeIs(testing::Le(columns))));
      }
    }
  }
  EXPECT_THAT(Picture({large}, {.columns = 100, .rows = 12}, kNow).back(), HasSubstr("and 97 more"));
  EXPECT_THAT(Picture({large, large}, {.columns = 100, .rows = 24}, kNow), SizeIs(23)) << "the room is used";
}

TEST(PictureTest, AnEndedJobIsTwoLines) {
  v1::WatchJobResponse heard = Running();
  heard.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Picture({heard}, {.columns = 100, .rows = 24}, kNow), SizeIs(2));
}

TEST(PictureTest, ShowsWhatTheJobWaitsForAndTrackerFailures) {
  v1::WatchJobResponse heard = Running();
  heard.mutable_job()->set_waiting_for("a device for label room=lab");
  EXPECT_EQ(Picture({heard}, {}, kNow)[2], "  waiting for a device for label room=lab");
  heard.set_trouble("disk full");
  EXPECT_EQ(Picture({heard}, {}, kNow)[2], "  the tracker cannot store anything: disk full");
  EXPECT_THAT(Line(heard, kNow), EndsWith("the tracker cannot store anything: disk full"));
}

TEST(PictureTest, NamesCannotCommandTheTerminal) {
  v1::WatchJobResponse heard = Running();
  heard.mutable_job()->mutable_spec()->set_name(
      "a\x1b[2Jb\nc\xc2\x9b"
      "d\xe2\x80\xae"
      "e\xff");
  EXPECT_THAT(Picture({heard}, {}, kNow)[0], HasSubstr("a?[2Jb?c?d?e\xef\xbf\xbd"));
  EXPECT_EQ(Printable("Größe\t1\n"), "Größe\t1\n");
}

// All bytes that a terminal of this kind gets from two pictures, the second one shorter, and from the end of the view.
std::string OnATerminal(const char* kind) {
  int terminal = -1;
  winsize size = {.ws_row = 20, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", kind, 1);
    JobView view(1);
    v1::WatchJobResponse heard = Running();
    view.Show(heard);
    heard.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
    view.Show(heard);
    _exit(0);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(terminal, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

TEST(JobViewTest, RedrawsInPlaceOnATerminal) {
  const std::string text = OnATerminal("xterm");
  EXPECT_THAT(text, HasSubstr("running"));
  EXPECT_THAT(text, HasSubstr("\x1b[7A\r\x1b[J"
                              "j1"));
  EXPECT_THAT(text, HasSubstr("succeeded"));
}

TEST(JobViewTest, WritesLinesToATerminalThatCannotRedraw) {
  EXPECT_THAT(OnATerminal("dumb"), AllOf(HasSubstr("100 trials"), Not(HasSubstr("\x1b"))));
}

// Without a terminal, a line is printed every ten seconds of the steady clock.
TEST(JobViewTest, LinesAreScheduledByTheSteadyClock) {
  absl::Time steady = absl::UnixEpoch();
  testing::internal::CaptureStderr();  // captured before the view is made, so that it sees no terminal
  JobView view(1, [&steady] { return steady; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const auto said = [&view] {
    testing::internal::CaptureStderr();
    view.Show(Running());
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(), HasSubstr("100 trials"));
  steady += absl::Seconds(9);
  EXPECT_EQ(said(), "");
  steady += absl::Seconds(1);
  EXPECT_THAT(said(), HasSubstr("100 trials"));
}

// For a program there is a document every second, and one at the end.
TEST(JobViewTest, DocumentsForPrograms) {
  setenv("HONE_PROGRESS", "json", 1);
  absl::Time steady = absl::UnixEpoch();
  v1::WatchJobResponse heard = Running();
  heard.mutable_job()->mutable_spec()->mutable_time_budget()->set_seconds(100);
  testing::internal::CaptureStderr();
  {
    JobView view(1, [&steady] { return steady; });
    view.Show(heard);
    steady += absl::Milliseconds(900);
    view.Show(heard);
    heard.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
    view.Show(heard);
  }
  unsetenv("HONE_PROGRESS");
  std::istringstream lines(testing::internal::GetCapturedStderr());
  std::vector<nlohmann::json> said;
  for (std::string line; std::getline(lines, line);) said.push_back(nlohmann::json::parse(line).at("progress"));
  ASSERT_THAT(said, SizeIs(2));
  EXPECT_EQ(said[0]["share"], 0.25);
  EXPECT_EQ(said[0]["seconds_left"], 75);
  EXPECT_EQ(said[0]["trials"], 100);
  EXPECT_EQ(said[0]["title"], "net.onnx for arm64 -mcpu=cortex-a72");
  EXPECT_EQ(said[0]["latency_ms_after"], nullptr);
  EXPECT_THAT(std::string(said[0]["text"]), HasSubstr("100 trials"));
  EXPECT_EQ(said[1]["state"], "succeeded");
  EXPECT_EQ(said[1]["share"], 1);
}

TEST(JobToJsonTest, UnknownEnumeratorsAreShownAsNumbers) {
  v1::Job job = Running().job();
  job.set_state(static_cast<v1::JobState>(99));
  job.mutable_progress()->mutable_failed(0)->set_kind(static_cast<v1::FailureKind>(99));
  EXPECT_EQ(JobToJson(job)["state"], "99");
  EXPECT_EQ(JobToJson(job)["failed"].dump(), R"({"99":10})");
  EXPECT_EQ(Failures(job.progress()), "10% failed (10 99)");
  EXPECT_THAT(JobsTable({job}), HasSubstr(" 99 "));
}

TEST(JobToJsonTest, ReportsHowTheTimeWasSpent) {
  v1::Job job = Running().job();
  v1::TimeSpent& spent = *job.mutable_progress()->mutable_spent();
  spent.set_proposing_seconds(1);
  spent.set_learning_seconds(2);
  spent.set_building_seconds(3);
  spent.set_waiting_seconds(4);
  spent.set_measuring_seconds(5);
  spent.set_drawn(600);
  spent.set_illegal(60);
  spent.set_repeated(6);
  EXPECT_EQ(JobToJson(job)["spent"].dump(),
            R"({"proposing_seconds":1.0,"learning_seconds":2.0,"building_seconds":3.0,"waiting_seconds":4.0,)"
            R"("measuring_seconds":5.0,"drawn":600,"illegal":60,"repeated":6})");
  EXPECT_THAT(
      JobsToText({job}),
      HasSubstr("proposing 1.0 s (10.0 ms a trial), learning 2.0 s (20.0 ms a trial), building 3.0 s (30.0 ms a "
                "trial), waiting for a device 4.0 s (40.0 ms a trial), measuring 5.0 s (50.0 ms a trial)\n"
                "600 candidates drawn, 10% illegal, 1% drawn before\n"));
}

TEST(JobToJsonTest, SaysWhyItFailedAndWhen) {
  v1::Job job = Running().job();
  job.mutable_created()->set_seconds(1'800'000'000);
  EXPECT_EQ(JobToJson(job)["error"], "");
  EXPECT_EQ(JobToJson(job)["created"], "2027-01-15T08:00:00+00:00");
  EXPECT_EQ(JobToJson(job)["started"], nullptr);
  EXPECT_EQ(JobToJson(job)["ended"], nullptr);
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_error("nothing could be measured");
  job.mutable_started()->set_seconds(1'800'000'001);
  job.mutable_ended()->set_seconds(1'800'000'060);
  EXPECT_EQ(JobToJson(job)["error"], "nothing could be measured");
  EXPECT_EQ(JobToJson(job)["started"], "2027-01-15T08:00:01+00:00");
  EXPECT_EQ(JobToJson(job)["ended"], "2027-01-15T08:01:00+00:00");
}

TEST(JobToJsonTest, SaysWhyAWorkloadWasNotMeasured) {
  v1::Job job = Running().job();
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(JobsToText({job}), Not(HasSubstr("not measured")));
  job.mutable_progress()->mutable_workloads(2)->set_trouble("it does not compile:\nsignal 6");
  EXPECT_THAT(JobsToText({job}), EndsWith("\nnot measured: gemm: it does not compile:?signal 6\n"));
  EXPECT_EQ(JobToJson(job)["workloads"][2]["trouble"], "it does not compile:\nsignal 6");
  EXPECT_EQ(JobToJson(job)["workloads"][0]["trouble"], "");
}

TEST(JobToJsonTest, ReportsNotificationAndItsDelivery) {
  v1::Job job = Running().job();
  EXPECT_EQ(JobToJson(job)["notice"], nullptr);
  job.mutable_spec()->set_notify_url("https://hooks.lab/done");
  job.mutable_notice()->set_attempts(3);
  job.mutable_notice()->set_problem("it answered 500");
  EXPECT_EQ(JobToJson(job)["notice"].dump(),
            R"({"url":"https://hooks.lab/done","delivered":false,"given_up":false,"attempts":3,)"
            R"("problem":"it answered 500"})");
  job.mutable_notice()->set_closed(true);
  EXPECT_EQ(JobToJson(job)["notice"]["given_up"], true);
  job.mutable_notice()->clear_problem();
  EXPECT_EQ(JobToJson(job)["notice"]["delivered"], true);
  EXPECT_EQ(JobToJson(job)["notice"]["given_up"], false);
}

TEST(JobsTableTest, SaysWhatAJobWaitsForAndWhyOneFailed) {
  v1::Job waiting = Running("j1").job(), failed = Running("j2").job();
  waiting.set_waiting_for("a tuner");
  failed.set_state(v1::JOB_STATE_FAILED);
  failed.set_error("nothing could be measured;\nconv2d: it does not load");
  const std::string table = JobsTable({waiting, failed});
  EXPECT_THAT(table, HasSubstr("net.onnx for arm64 -mcpu=cortex-a72, waiting for a tuner\nj2 "));
  EXPECT_THAT(table, EndsWith("-mcpu=cortex-a72: nothing could be measured;?conv2d: it does not load\n"));
}

TEST(JobsToTextTest, SmallKernelsHaveATime) {
  v1::Job job = Running().job();
  job.mutable_progress()->set_latency_before_seconds(8e-7);
  job.mutable_progress()->set_latency_after_seconds(2e-7);
  EXPECT_THAT(JobsToText({job}),
              HasSubstr("kernels together: 800 ns untuned, 200 ns tuned (4.00x; a sum, not measured as a whole)\n"));
}

v1::Job Measured(double kernels_ratio) {
  v1::Job job = Running().job();
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.mutable_progress()->set_latency_before_seconds(0.02);
  job.mutable_progress()->set_latency_after_seconds(0.01);
  v1::ModelConfirmation& whole = *job.mutable_progress()->mutable_confirmation();
  whole.set_device("rpi4/cpu");
  whole.set_before_seconds(0.0121);
  whole.set_after_seconds(0.009);
  whole.set_ratio(1.34);
  whole.set_ratio_low(1.32);
  whole.set_ratio_high(1.36);
  whole.set_kernels_ratio(kernels_ratio);
  return job;
}

TEST(JobsToTextTest, TheModelsGainIsMeasuredWithItsSpread) {
  const std::string text = JobsToText({Measured(1.37)});
  EXPECT_THAT(text, HasSubstr("\n1.34x (1.32 to 1.36) measured on rpi4/cpu: 12.1 ms -> 9.00 ms\n"
                              "kernels together: 20.0 ms untuned, 10.0 ms tuned (2.00x)\n"));
  EXPECT_THAT(text, Not(HasSubstr("disagrees")));
  EXPECT_THAT(JobsTable({Measured(1.37)}), HasSubstr("cortex-a72, 1.34x (1.32 to 1.36) measured on rpi4/cpu"));
  v1::WatchJobResponse heard;
  *heard.mutable_job() = Measured(1.37);
  EXPECT_THAT(Line(heard, kNow), StartsWith("1.34x (1.32 to 1.36) measured on rpi4/cpu: 12.1 ms -> 9.00 ms; "));
}

TEST(JobsToTextTest, ASumThatDisagreesIsTold) {
  EXPECT_THAT(JobsToText({Measured(1.97)}),
              HasSubstr("the sum of the kernels disagrees with the whole model by 47%: 1.97x is what the kernels "
                        "gained alone, 1.34x is what the model gained\n"));
  EXPECT_THAT(JobsToText({Measured(1.26)}), HasSubstr("disagrees with the whole model by 6%"));
  v1::Job unsure = Measured(1.5);
  unsure.mutable_progress()->mutable_confirmation()->set_ratio_high(1.6);
  EXPECT_THAT(JobsToText({unsure}), Not(HasSubstr("disagrees"))) << "it is inside the interval";
  EXPECT_THAT(JobsToText({Measured(0)}), Not(HasSubstr("disagrees"))) << "the sums are for other sizes";
}

TEST(JobsToTextTest, AModelThatWasNotMeasuredSaysWhy) {
  v1::Job job = Measured(1.3);
  job.mutable_progress()->mutable_confirmation()->Clear();
  job.mutable_progress()->mutable_confirmation()->set_problem("the compiler was killed by signal 9 (Killed)");
  EXPECT_THAT(JobsToText({job}),
              AllOf(HasSubstr("the whole model was not measured: the compiler was killed by signal 9 (Killed)\n"),
                    HasSubstr("(2.00x; a sum, not measured as a whole)")));
  job.mutable_progress()->clear_confirmation();
  EXPECT_THAT(JobsToText({job}), Not(HasSubstr("was not measured")));
}

TEST(TimeLeftTest, TheRunOfTheModelIsLimitedByUntilAlone) {
  v1::Job job = Running().job();
  job.mutable_spec()->mutable_time_budget()->set_seconds(100);
  EXPECT_TRUE(TimeLeft(job, kNow).has_value());
  job.mutable_progress()->set_search_ended(true);
  EXPECT_FALSE(TimeLeft(job, kNow).has_value());
}

// The advice does not promise that a larger budget helps: all workloads may have been searched completely.
TEST(JobsToTextTest, AdviceWithoutTrialsPromisesNothing) {
  v1::Job job = Running().job();
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(JobsToText({job}), Not(HasSubstr("no trial was made")));
  job.mutable_progress()->set_trials(0);
  EXPECT_THAT(JobsToText({job}), AllOf(HasSubstr("no trial was made"), HasSubstr("time was too short"),
                                       HasSubstr("hone records best"), Not(HasSubstr("larger"))));
}

TEST(LatencyTest, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(Latency(0), "0.00 ns");
  EXPECT_EQ(Latency(1.234e-6), "1.23 us");
  EXPECT_EQ(Latency(99.96e-6), "100 us");
  EXPECT_EQ(Latency(999.4e-6), "999 us");
  EXPECT_EQ(Latency(999.6e-6), "1.00 ms");
  EXPECT_EQ(Latency(0.01234), "12.3 ms");
  EXPECT_EQ(Latency(2.5), "2.50 s");
  EXPECT_EQ(Latency(1234), "1234 s");
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(999), "999 bytes");
  EXPECT_EQ(BytesText(1000), "1.0 kB");
  EXPECT_EQ(BytesText(999'949), "999.9 kB");
  EXPECT_EQ(BytesText(999'950), "1.0 MB");
  EXPECT_EQ(BytesText(24'020'000), "24.0 MB");
  EXPECT_EQ(BytesText(2.5e12), "2500.0 GB");
}

TEST(TitleOfTest, ARunWithoutATargetHasNoGap) {
  v1::JobSpec spec;
  spec.set_name("net.hone");
  spec.mutable_run();
  spec.add_devices("board");
  EXPECT_EQ(TitleOf(spec), "run of net.hone on board");
}

TEST(ClockTest, HasHoursWhereThereAreSome) {
  EXPECT_EQ(Clock(59.9), "0:59");
  EXPECT_EQ(Clock(3599), "59:59");
  EXPECT_EQ(Clock(3723), "1:02:03");
  EXPECT_EQ(Clock(-1), "0:00");
}

}  // namespace
}  // namespace hone::cli
