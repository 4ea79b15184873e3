// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/cpu_cores.h"
#include "device_agent/devices/cpu/cpu_device.h"
#include "device_agent/launcher/reference_cache.h"
#include "device_agent/launcher/visit_convert.h"
#include "device_agent/launcher/visit_runner.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

class VisitTest : public testing::Test {
 protected:
  std::map<std::string, v1::Outcome> Run(const v1::Batch& batch) {
    result_ = MeasureBatch(visit_runner_, batch, -1);
    EXPECT_EQ(result_.error(), "");
    std::map<std::string, v1::Outcome> outcomes;
    for (const v1::CandidateOutcome& outcome : result_.outcomes()) outcomes[outcome.candidate_id()] = outcome.outcome();
    return outcomes;
  }
  // The failure of one evil kernel between two good ones, which must not suffer.
  v1::Failure FailureFromStatus(const std::string& symbol) {
    const auto outcomes = Run(HandMadeBatch({"good", symbol, "packed_double"}));
    EXPECT_TRUE(outcomes.at("good").has_timing()) << outcomes.at("good").DebugString();
    EXPECT_TRUE(outcomes.at("packed_double").has_timing()) << outcomes.at("packed_double").DebugString();
    EXPECT_TRUE(outcomes.at(symbol).has_failure()) << symbol << " was not found out";
    return outcomes.at(symbol).failure();
  }
  CpuDevice device_;
  VisitRunner visit_runner_{device_, VisitRunner::Options{}};
  v1::BatchResult result_;
};

TEST_F(VisitTest, GoodKernelsAreTimedAndRanked) {
  const auto outcomes = Run(HandMadeBatch({"good", "slow", "packed_double"}));
  for (const auto& [id, outcome] : outcomes) {
    ASSERT_TRUE(outcome.has_timing()) << id << ": " << outcome.failure().text();
    const v1::Timing& timing = outcome.timing();
    EXPECT_GE(timing.calls_per_repeat(), 1);
    EXPECT_GE(timing.seconds_size(), 1);
    EXPECT_GT(timing.reference_seconds(), 0);
    for (const double seconds : timing.seconds()) EXPECT_GT(seconds, 0);
  }
  EXPECT_LT(outcomes.at("good").timing().seconds(0), outcomes.at("slow").timing().seconds(0));
  EXPECT_LT(outcomes.at("good").timing().first_interleaved(), outcomes.at("good").timing().seconds_size());
}

TEST_F(VisitTest, ThreadsTakePart) {
  v1::Batch batch = HandMadeBatch({"parallel", "crash_in_thread", "good"});
  batch.set_threads(2);
  const auto outcomes = Run(batch);
  EXPECT_TRUE(outcomes.at("parallel").has_timing());
  EXPECT_TRUE(outcomes.at("good").has_timing());
  EXPECT_EQ(outcomes.at("crash_in_thread").failure().kind(), v1::FAILURE_KIND_CRASHED);
}

TEST_F(VisitTest, RepeatsRunOnConstantsThatComeRoundAsInTheModel) {
  v1::Batch batch = HandMadeBatch({"same_constants", "packed_double", "wrong"});
  EXPECT_EQ(Run(batch).at("same_constants").failure().kind(), v1::FAILURE_KIND_CRASHED) << "it finds out";
  batch.mutable_policy()->set_constant_bytes_between_runs(100'000);
  const auto outcomes = Run(batch);
  EXPECT_TRUE(outcomes.at("same_constants").has_timing()) << outcomes.at("same_constants").DebugString();
  EXPECT_TRUE(outcomes.at("packed_double").has_timing()) << outcomes.at("packed_double").DebugString();
  EXPECT_EQ(outcomes.at("wrong").failure().kind(), v1::FAILURE_KIND_WRONG_OUTPUT) << "verified on the true ones";
  batch.mutable_policy()->set_constant_bytes_between_runs(7'000);
  EXPECT_TRUE(Run(batch).at("same_constants").has_failure()) << "too few to come round";
}

TEST_F(VisitTest, ColdConstantsAreReadOnly) {
  v1::Batch batch = HandMadeBatch({"write_cold", "good", "same_constants"});
  batch.mutable_policy()->set_constant_bytes_between_runs(100'000);
  const auto outcomes = Run(batch);
  EXPECT_THAT(outcomes.at("write_cold").failure().text(), HasSubstr("of cold constants"));
  EXPECT_TRUE(outcomes.at("good").has_timing()) << outcomes.at("good").DebugString();
  EXPECT_TRUE(outcomes.at("same_constants").has_timing()) << outcomes.at("same_constants").DebugString();
}

TEST_F(VisitTest, IntegerConstantsMayBeIndicesAndStayTheSame) {
  v1::Batch batch = HandMadeBatch({"same_constants"});
  batch.mutable_policy()->set_constant_bytes_between_runs(100'000);
  batch.mutable_buffers(1)->set_dtype(v1::DTYPE_I32);
  for (v1::Kernel* kernel : {batch.mutable_reference(), batch.mutable_candidates(0)->mutable_kernel()}) {
    kernel->set_interface(absl::StrReplaceAll(kernel->interface(), {{"constant f32", "constant i32"}}));
  }
  EXPECT_TRUE(Run(batch).at("same_constants").has_failure());
}

TEST_F(VisitTest, SlowKernelsAreCalledSeldom) {
  v1::Batch batch = HandMadeBatch({"very_slow"});
  batch.mutable_policy()->set_timeout_seconds(20);
  const v1::Timing timing = Run(batch).at("very_slow").timing();
  EXPECT_EQ(timing.calls_per_repeat(), 1);
  EXPECT_EQ(timing.first_interleaved(), 1);
  EXPECT_EQ(timing.seconds_size(), 1 + 3);
}

TEST_F(VisitTest, AVisitOfLimitedTimeEndsWithWhatItHas) {
  v1::Batch batch = HandMadeBatch({"very_slow", "good"});
  batch.mutable_policy()->set_timeout_seconds(20);
  batch.mutable_policy()->set_visit_seconds(0.9);
  const auto outcomes = Run(batch);
  ASSERT_EQ(outcomes.size(), 1u) << "no time for the second";
  EXPECT_EQ(outcomes.at("very_slow").timing().seconds_size(), 1) << "the call that was verified counts";
}

// A call takes a second: there is time for one round at most, however fast the machine is otherwise.
TEST_F(VisitTest, TruncatedFinalRoundDoesNotCompare) {
  v1::Batch batch = HandMadeBatch({"very_slow"});
  batch.set_final(true);
  batch.mutable_policy()->set_timeout_seconds(20);
  batch.mutable_policy()->set_visit_seconds(3.5);
  const v1::Timing timing = Run(batch).at("very_slow").timing();
  EXPECT_GE(timing.seconds_size(), 1);
  EXPECT_LE(timing.seconds_size(), 2);
  EXPECT_EQ(timing.first_interleaved(), timing.seconds_size());
}

// A child with a driver can move the process that has forked it.
TEST_F(VisitTest, EveryChildStartsOnTheCpusThatWereChosen) {
  const std::vector<int> all = UsableCpus();
  if (all.size() < 2) GTEST_SKIP() << "there is one CPU";
  const ScopedCpuAffinity moved({all.front()});
  VisitRunner visit_runner(device_, {.cpus = all});
  EXPECT_EQ(MeasureBatch(visit_runner, HandMadeBatch({"good"}), -1).error(), "");
  EXPECT_EQ(UsableCpus(), all);
}

TEST_F(VisitTest, KernelKilledAtTheDeadlineIsNotBlamed) {
  VisitRunner visit_runner(device_, {.memory_limit = 0, .cache_bytes = 1 << 20, .grace_seconds = 0.1});
  v1::Batch batch = HandMadeBatch({"good", "hang"});
  batch.mutable_policy()->set_timeout_seconds(1000);
  batch.mutable_policy()->set_visit_seconds(2);
  const v1::BatchResult result = MeasureBatch(visit_runner, batch, -1);
  EXPECT_EQ(result.error(), "");
  ASSERT_EQ(result.outcomes_size(), 1);
  EXPECT_EQ(result.outcomes(0).candidate_id(), "good");
  EXPECT_TRUE(result.outcomes(0).outcome().has_timing());
  *batch.mutable_reference() = HandMadeKernel("hang");
  batch.set_fill_seed(99);  // not in the cache
  batch.mutable_policy()->set_visit_seconds(0.1);
  EXPECT_THAT(MeasureBatch(visit_runner, batch, -1).error(),
              HasSubstr("the time of the visit ended before the reference kernel did"));
}

TEST_F(VisitTest, ConfirmationPairsAllCandidates) {
  v1::Batch batch = HandMadeBatch({"good", "slow"});
  batch.set_final(true);
  const auto outcomes = Run(batch);
  const v1::Timing& good = outcomes.at("good").timing();
  const v1::Timing& slow = outcomes.at("slow").timing();
  EXPECT_EQ(good.seconds_size() - good.first_interleaved(), slow.seconds_size() - slow.first_interleaved());
  EXPECT_GE(good.seconds_size() - good.first_interleaved(), 11);
}

TEST_F(VisitTest, IncumbentIsAFinalistHoweverSlow) {
  v1::Batch batch = HandMadeBatch({"good", "slow"});
  batch.mutable_policy()->set_finalists(1);
  const v1::Timing loser = Run(batch).at("slow").timing();
  EXPECT_EQ(loser.first_interleaved(), loser.seconds_size());
  batch.mutable_policy()->set_incumbent_id("slow");
  const v1::Timing incumbent = Run(batch).at("slow").timing();
  EXPECT_LT(incumbent.first_interleaved(), incumbent.seconds_size());
}

TEST_F(VisitTest, WrongNumbers) {
  const v1::Failure failure = FailureFromStatus("wrong");
  EXPECT_EQ(failure.kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
  EXPECT_THAT(failure.text(), HasSubstr("output 'y': 1 of 1000 elements differ; element 17"));
  EXPECT_THAT(FailureFromStatus("incomplete").text(), HasSubstr("element 999 is nan"));
}

TEST_F(VisitTest, Crashes) {
  EXPECT_EQ(FailureFromStatus("crash").kind(), v1::FAILURE_KIND_CRASHED);
  EXPECT_THAT(FailureFromStatus("crash").text(), HasSubstr("SIGSEGV"));
  EXPECT_THAT(FailureFromStatus("abort_call").text(), HasSubstr("SIGABRT"));
  EXPECT_THAT(FailureFromStatus("exit_call").text(), HasSubstr("ended with status 3"));
  EXPECT_EQ(FailureFromStatus("exit_call").kind(), v1::FAILURE_KIND_CRASHED);
}

TEST_F(VisitTest, CrashAfterVerificationBlamesTheCandidate) {
  v1::Batch batch = HandMadeBatch({"good", "crash_later", "packed_double"});
  batch.set_final(true);  // no candidate drops out, so it is called more than eight times on a slow machine too
  const auto outcomes = Run(batch);
  EXPECT_TRUE(outcomes.at("good").has_timing());
  EXPECT_TRUE(outcomes.at("packed_double").has_timing());
  EXPECT_EQ(outcomes.at("crash_later").failure().kind(), v1::FAILURE_KIND_CRASHED);
}

TEST_F(VisitTest, HangIsATimeout) {
  const v1::Failure failure = FailureFromStatus("hang");
  EXPECT_EQ(failure.kind(), v1::FAILURE_KIND_RUN_TIMEOUT);
  EXPECT_THAT(failure.text(), HasSubstr("longer than 1 s"));
}

TEST_F(VisitTest, OneCallThatTakesTooLongIsNotYetATimeout) {
  v1::Batch batch = HandMadeBatch({"slow_at_first", "very_slow"});
  batch.mutable_policy()->set_timeout_seconds(0.5);
  const auto outcomes = Run(batch);
  EXPECT_TRUE(outcomes.at("slow_at_first").has_timing()) << outcomes.at("slow_at_first").DebugString();
  EXPECT_EQ(outcomes.at("very_slow").failure().kind(), v1::FAILURE_KIND_RUN_TIMEOUT);
  EXPECT_THAT(outcomes.at("very_slow").failure().text(), HasSubstr("calls took"));
}

// Of 1 s in the verified call, or 0.3 s in the one after it: neither is what the kernel takes. After a stall, a few
// more calls may be slow, because the caches are cold.
TEST_F(VisitTest, OneStalledCallDecidesNothing) {
  for (const char* stalled : {"slow_in_its_second_call", "slow_after_a_stall", "slow_at_first"}) {
    for (const std::vector<std::string>& kernels : {std::vector<std::string>{stalled}, {"good", stalled}}) {
      v1::Batch batch = HandMadeBatch(kernels);
      batch.mutable_policy()->set_timeout_seconds(20);
      batch.mutable_policy()->set_finalists(1);
      const v1::Outcome outcome = Run(batch).at(stalled);
      ASSERT_TRUE(outcome.has_timing()) << outcome.DebugString();
      EXPECT_GE(outcome.timing().first_interleaved(), 3) << outcome.DebugString();
      for (const double seconds : outcome.timing().seconds()) EXPECT_LT(seconds, 0.2) << stalled;
    }
  }
}

// Before each call, all of its inputs are written.
TEST_F(VisitTest, OverheadOfATimedCallCounts) {
  v1::Batch batch = HandMadeBatch({"good"});
  batch.mutable_buffers(0)->set_elements(1 << 20);
  batch.mutable_buffers(0)->set_bytes(4 << 20);
  for (v1::Kernel* kernel : {batch.mutable_reference(), batch.mutable_candidates(0)->mutable_kernel()}) {
    kernel->set_interface(absl::StrReplaceAll(kernel->interface(), {{"input f32[1000]", "input f32[1048576]"}}));
  }
  batch.mutable_policy()->set_min_seconds_first(0.003);
  const v1::Outcome outcome = Run(batch).at("good");
  ASSERT_TRUE(outcome.has_timing()) << outcome.DebugString();
  EXPECT_LT(outcome.timing().calls_per_repeat(), 100) << "3 ms are for all that is done in the repeats";
}

TEST_F(VisitTest, AWorkspaceDoesNotBeginAsZeros) {
  EXPECT_EQ(FailureFromStatus("trusts_zeros").kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
  EXPECT_EQ(FailureFromStatus("packed_trusting_zeros").kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
}

TEST_F(VisitTest, EqualPackedBuffersAreShared) {
  const auto outcomes = Run(HandMadeBatch({"packed_double", "packed_too"}));  // `prepare` crashes when it runs again
  EXPECT_TRUE(outcomes.at("packed_double").has_timing()) << outcomes.at("packed_double").DebugString();
  EXPECT_TRUE(outcomes.at("packed_too").has_timing()) << outcomes.at("packed_too").DebugString();
}

TEST_F(VisitTest, WritesBesideBuffers) {
  EXPECT_EQ(FailureFromStatus("past_end").kind(), v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE);
  EXPECT_THAT(FailureFromStatus("past_end").text(), HasSubstr("past the end of output 'y'"));
  EXPECT_THAT(FailureFromStatus("before_begin").text(), HasSubstr("wrote 8 bytes before output 'y'"));
  EXPECT_EQ(FailureFromStatus("far_past_end").kind(), v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE);
  EXPECT_THAT(FailureFromStatus("far_past_end").text(), HasSubstr("20000 bytes past the end of output 'y'"));
}

TEST_F(VisitTest, WritesIntoInputsAndConstants) {
  EXPECT_EQ(FailureFromStatus("write_input").kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
  EXPECT_THAT(FailureFromStatus("write_input").text(), HasSubstr("at byte 12 of input 'x'"));
  EXPECT_THAT(FailureFromStatus("write_packed").text(), HasSubstr("packed buffer 0"));
}

#ifdef __x86_64__
TEST_F(VisitTest, ReadBeyondIsACrashAndSaysWhere) {
  const v1::Failure failure = FailureFromStatus("read_far");
  EXPECT_EQ(failure.kind(), v1::FAILURE_KIND_CRASHED);
  EXPECT_THAT(failure.text(), HasSubstr("read 20000 bytes past the end of input 'x'"));
  // Also when the one before it was timed: timed calls can read there.
  const auto outcomes = Run(HandMadeBatch({"good", "read_far"}));
  EXPECT_TRUE(outcomes.at("good").has_timing());
  EXPECT_EQ(outcomes.at("read_far").failure().kind(), v1::FAILURE_KIND_CRASHED);
}
#endif

TEST_F(VisitTest, CandidateThatBreaksTheCallerFails) {
  EXPECT_NE(FailureFromStatus("scribble").kind(), v1::FAILURE_KIND_UNSPECIFIED);
}

TEST_F(VisitTest, MissingFunctionIsACompileError) {
  const v1::Failure failure = FailureFromStatus("no_such_function");
  EXPECT_EQ(failure.kind(), v1::FAILURE_KIND_COMPILE_ERROR);
  EXPECT_THAT(failure.text(), HasSubstr("'no_such_function'"));
}

TEST_F(VisitTest, ChildCanNeitherForkNorSignal) {
  FailureFromStatus("fork_process");
  FailureFromStatus("kill_parent");
}

// As a pool of threads does, where the C library has no other way to know.
TEST_F(VisitTest, AKernelMayAskOnWhichCpuItRuns) {
  const v1::Outcome outcome = Run(HandMadeBatch({"ask_cpu"})).at("ask_cpu");
  EXPECT_TRUE(outcome.has_timing()) << outcome.DebugString();
}

TEST_F(VisitTest, LostCpusFailTheBatch) {
  const std::vector<int> usable = UsableCpus();
  if (usable.size() < 2) GTEST_SKIP() << "needs two CPUs";
  {
    const ScopedCpuAffinity fewer({usable.front()});  // than when the device was made
    const v1::BatchResult result = MeasureBatch(visit_runner_, HandMadeBatch({"good"}), -1);
    EXPECT_THAT(result.error(), HasSubstr("CPUs can be used"));
    EXPECT_EQ(result.outcomes_size(), 0);
    const SelfTestResult test = device_.SelfTest(1);
    EXPECT_FALSE(test.passed);
    EXPECT_THAT(test.reason, HasSubstr("CPUs can be used"));
  }
  EXPECT_TRUE(Run(HandMadeBatch({"good"})).at("good").has_timing());
}

TEST_F(VisitTest, MemoryIsLimited) {
  VisitRunner limited(device_, VisitRunner::Options{1 << 30, 1 << 20});
  const v1::BatchResult result = MeasureBatch(limited, HandMadeBatch({"eat_memory", "good"}), -1);
  ASSERT_EQ(result.error(), "");
  EXPECT_TRUE(result.outcomes(0).outcome().has_failure());
  EXPECT_TRUE(result.outcomes(1).outcome().has_timing());
}

TEST_F(VisitTest, BatchOfFailingCandidatesHasOutcomes) {
  const auto outcomes = Run(HandMadeBatch({"crash", "hang", "wrong", "past_end"}));
  for (const auto& [id, outcome] : outcomes) EXPECT_TRUE(outcome.has_failure()) << id;
}

TEST_F(VisitTest, BatchThatCannotBeMeasured) {
  v1::Batch batch = HandMadeBatch({"good"});
  *batch.mutable_reference() = HandMadeKernel("crash");
  batch.set_workload("other");
  EXPECT_THAT(MeasureBatch(visit_runner_, batch, -1).error(),
              HasSubstr("reference kernel failed: crashed with SIGSEGV"));
  *batch.mutable_reference() = HandMadeKernel("hang");
  batch.mutable_policy()->set_reference_timeout_seconds(0.05);
  EXPECT_THAT(MeasureBatch(visit_runner_, batch, -1).error(), HasSubstr("reference kernel failed"));
  batch = HandMadeBatch({"good"});
  batch.set_artifact("no shared object");
  EXPECT_THAT(MeasureBatch(visit_runner_, batch, -1).error(), HasSubstr("does not load"));
  batch = HandMadeBatch({"good"});
  batch.mutable_buffers(0)->set_bytes(3999);
  EXPECT_THAT(MeasureBatch(visit_runner_, batch, -1).error(), HasSubstr("buffer 'x'"));
}

TEST_F(VisitTest, KernelWithOtherParametersIsRefused) {
  const auto error = [&](const std::string& from, const std::string& to) {
    v1::Batch batch = HandMadeBatch({"good"});
    v1::Kernel* kernel = batch.mutable_candidates(0)->mutable_kernel();
    kernel->set_interface(absl::StrReplaceAll(kernel->interface(), {{from, to}}));
    return MeasureBatch(visit_runner_, batch, -1).error();
  };
  EXPECT_THAT(error("input f32[1000]", "input f32[1001]"),
              HasSubstr("candidate 'good': buffer 'x' is input f32[1000] in the batch, but input f32[1001]"));
  EXPECT_THAT(error("input f32[1000]", "input i32[1000]"), HasSubstr("i32[1000] in its interface"));
  EXPECT_THAT(error("input f32[1000]", "constant f32[1000]"), HasSubstr("but constant f32[1000]"));
  EXPECT_THAT(error("output f32[1000]\n", ""), HasSubstr("2 inputs, constants and outputs; the batch has 3"));
  EXPECT_THAT(error("launch", "lunch"), HasSubstr("candidate 'good': its interface: line"));
}

TEST_F(VisitTest, ReferenceIsRunOncePerWorkloadAndSeed) {
  v1::Batch batch = HandMadeBatch({"good"});
  Run(batch);
  *batch.mutable_reference() = HandMadeKernel("crash");  // would fail the batch if it were called
  Run(batch);
  batch.set_fill_seed(8);
  EXPECT_THAT(MeasureBatch(visit_runner_, batch, -1).error(), HasSubstr("reference"));
}

v1::Batch OpenBatch(const std::vector<std::string>& symbols, const std::string& sizes) {
  v1::Batch batch = HandMadeBatch(symbols);
  batch.set_workload("open y = 2 * x + w");
  batch.set_sizes(sizes);
  *batch.mutable_reference() = HandMadeKernel("open_size");
  return batch;
}

TEST_F(VisitTest, ATimeIsTheSumOverThePoints) {
  const auto outcomes = Run(OpenBatch({"open_slow"}, "n0=1000;n0=200"));  // 10 and 2 ms
  ASSERT_TRUE(outcomes.at("open_slow").has_timing()) << outcomes.at("open_slow").DebugString();
  for (const double seconds : outcomes.at("open_slow").timing().seconds()) EXPECT_GE(seconds, 0.012);
}

TEST_F(VisitTest, AReferenceIsForItsPoints) {
  EXPECT_TRUE(Run(OpenBatch({"open_size"}, "n0=100")).at("open_size").has_timing());
  v1::Batch without_reference = OpenBatch({"open_size"}, "n0=100");
  *without_reference.mutable_reference() = HandMadeKernel("open_crash");  // fails the batch if it is called
  EXPECT_EQ(MeasureBatch(visit_runner_, without_reference, -1).error(), "");
  VisitBatch one_point, two_points;
  two_points.points = {{100}, {200}};
  one_point.points = {{100}};
  EXPECT_NE(ReferenceCache::KeyOf(one_point), ReferenceCache::KeyOf(two_points));
  without_reference.set_sizes("n0=100;n0=200");
  EXPECT_THAT(MeasureBatch(visit_runner_, without_reference, -1).error(), HasSubstr("reference"));
  const auto outcomes = Run(OpenBatch({"open_size", "open_wrong_when_short"}, "n0=1000"));
  EXPECT_TRUE(outcomes.at("open_size").has_timing()) << outcomes.at("open_size").DebugString();
  EXPECT_TRUE(outcomes.at("open_wrong_when_short").has_timing()) << "it is right at the only point";
  EXPECT_THAT(MeasureBatch(visit_runner_, OpenBatch({"open_size"}, ""), -1).error(), HasSubstr("has 1 open sizes"));
  EXPECT_THAT(MeasureBatch(visit_runner_, OpenBatch({"open_size"}, "n0=x"), -1).error(), HasSubstr("are not points"));
}

// What a batch claims, and what its reference computes, is its own affair.
TEST_F(VisitTest, ReferenceOfAnotherBatchIsNotTrusted) {
  v1::Batch liar = HandMadeBatch({"wrong"});
  *liar.mutable_reference() = HandMadeKernel("wrong");
  liar.set_workload("another");  // under the same digest
  EXPECT_TRUE(Run(liar).at("wrong").has_timing());
  EXPECT_TRUE(Run(HandMadeBatch({"good"})).at("good").has_timing());
  liar.set_workload(HandMadeBatch({"good"}).workload());  // and with the same text
  liar.set_fill_seed(8);
  EXPECT_TRUE(Run(liar).at("wrong").has_timing());
  v1::Batch honest = HandMadeBatch({"good", "wrong", "packed_double"});
  honest.set_fill_seed(8);
  const auto outcomes = Run(honest);
  EXPECT_TRUE(outcomes.at("good").has_timing()) << outcomes.at("good").DebugString();
  EXPECT_TRUE(outcomes.at("packed_double").has_timing());
  EXPECT_EQ(outcomes.at("wrong").failure().kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
}

TEST_F(VisitTest, CancelStopsAHangingKernel) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  v1::Batch batch = HandMadeBatch({"good"});
  Run(batch);  // the reference is known
  batch = HandMadeBatch({"hang"});
  batch.mutable_policy()->set_timeout_seconds(1000);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(MeasureBatch(visit_runner_, batch, ends[0]).error(), "cancelled");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace hone::agent
