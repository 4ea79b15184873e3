// SPDX-License-Identifier: Apache-2.0
#include "tracker/convert.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert.h"
#include "tests/unit/records/sample_records.h"

namespace hone::tracker {
namespace {

using records::Failure;
using records::Outcome;
using records::Record;
using records::Timing;
using ::testing::SizeIs;

TEST(RecordMessageTest, EveryValueOfARecordComesBack) {
  for (const Outcome& outcome : {Outcome(Timing()), Outcome(Failure())}) {
    const Record record = records::EveryValueSet(outcome);
    const v1::Record message = ToProto(records::StoredRecord{7, record});
    EXPECT_EQ(message.row(), 7);
    const absl::StatusOr<Record> back = FromProto(message);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, record);
  }
}

TEST(RecordMessageTest, AFilterByModelComesBack) {
  EXPECT_EQ(FromProto(ToProto(records::Filter{.model = "net.onnx"}))->model, "net.onnx");
}

TEST(RecordMessageTest, BothTextsOfATargetComeBack) {
  const records::Filter filter = {.target = "cpu -l1=1", .other_target = "cpu"};
  for (const records::Filter& back : {FromProto(BestRequestOf(filter)), FromProto(ToProto(filter)).value()}) {
    EXPECT_EQ(back.target, "cpu -l1=1");
    EXPECT_EQ(back.other_target, "cpu");
  }
}

TEST(RecordMessageTest, EveryFailureKindComesBack) {
  for (const FailureKind kind : kAllFailureKinds) {
    Record record;
    record.outcome = Failure{kind, "text"};
    EXPECT_EQ(*FromProto(ToProto(records::StoredRecord{1, record})), record);
    const std::string name = absl::AsciiStrToUpper(std::string(FailureKindName(kind)));
    EXPECT_EQ(v1::FailureKind_Name(ToProto(kind)), "FAILURE_KIND_" + name);
  }
}

TEST(RecordMessageTest, AnOutcomeMustBeThereAndKnown) {
  v1::Record message;
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status()));
  message.mutable_outcome()->mutable_failure()->set_kind(static_cast<v1::FailureKind>(99));
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status()));
}

v1::Timing TimingOfAnAgent() {
  v1::Timing timing;
  for (const double seconds : {3e-3, 1e-3, 1.5e-3, 1.2e-3}) timing.add_seconds(seconds);
  timing.set_calls_per_repeat(12);
  timing.set_first_interleaved(1);
  timing.set_reference_seconds(2e-5);
  timing.set_drift(0.03);
  timing.set_temperature_c(61);
  timing.set_clock_mhz(3400);
  timing.set_max_error(1e-6);
  return timing;
}

Recordable Measured(const v1::Timing& timing) {
  v1::Batch batch;
  batch.set_workload_digest("d1");
  batch.set_target("cpu");
  batch.set_compiler_version("hone 1");
  batch.set_final(true);
  batch.mutable_tolerance()->set_rtol(1e-4);
  v1::Candidate* candidate = batch.add_candidates();
  candidate->set_id("c0");
  candidate->set_schedule("split");
  candidate->set_is_default(true);
  candidate->set_predicted_seconds(2e-3);
  Recordable recordable{"b1", "job", std::make_shared<const v1::Batch>(batch), {}, "b1.2"};
  v1::CandidateOutcome* outcome = recordable.result.add_outcomes();
  outcome->set_candidate_id("c0");
  *outcome->mutable_outcome()->mutable_timing() = timing;
  v1::DeviceFingerprint& device = *recordable.result.mutable_device();
  device.set_text("board");
  device.set_kernel("6.1.0-18-amd64");
  device.set_governor("performance");
  device.set_smt("on");
  device.set_memory_bytes(int64_t{64} << 30);
  recordable.result.set_agent_version("0.2.0");
  (*recordable.result.mutable_environment())["sandbox"] = "wall";
  (*recordable.result.mutable_environment())["golden_us"] = "12.3";
  return recordable;
}

TEST(ToRecordsTest, KeepsEverythingThatAnAgentReports) {
  Recordable measured = Measured(TimingOfAnAgent());
  measured.model = "net.onnx";
  measured.title = "conv2d 8x8x4";
  measured.nodes = "conv1, relu1";
  const std::vector<Record> rows = ToRecords("farm", measured);
  ASSERT_THAT(rows, SizeIs(1));
  const Record& record = rows[0];
  EXPECT_EQ(record.job_id, "job");
  EXPECT_EQ(record.model, "net.onnx");
  EXPECT_EQ(record.title, "conv2d 8x8x4");
  EXPECT_EQ(record.nodes, "conv1, relu1");
  EXPECT_EQ(record.key, (records::Key{"d1", "cpu", "board", "hone 1"}));
  EXPECT_EQ(record.measurement_id, "farm/b1/c0");
  EXPECT_EQ(record.batch_id, "farm/b1.2") << "candidates of one visit share it";
  EXPECT_TRUE(record.is_default);
  EXPECT_EQ(record.environment,
            "kernel=6.1.0-18-amd64 governor=performance smt=on memory_bytes=68719476736 agent=0.2.0 golden_us=12.3 "
            "sandbox=wall");
  const auto& timing = std::get<Timing>(record.outcome);
  EXPECT_THAT(timing.seconds, testing::ElementsAre(3e-3, 1e-3, 1.5e-3, 1.2e-3));
  EXPECT_EQ(timing.first_interleaved, 1);
  EXPECT_EQ(timing.calls_per_repeat, 12);
  EXPECT_TRUE(timing.confirmed);
  EXPECT_TRUE(timing.verified);
  EXPECT_EQ(timing.tolerance, 1e-4);
  EXPECT_EQ(timing.reference_seconds, 2e-5);
  EXPECT_EQ(timing.drift, 0.03);
  EXPECT_EQ(timing.temperature_celsius, 61);
  EXPECT_EQ(timing.clock_hertz, 3.4e9);
  EXPECT_EQ(timing.predicted_seconds, 2e-3);
}

// Time ran out before the finalists had enough interleaved rounds.
TEST(ToRecordsTest, AFinalComparisonOfTooFewRoundsIsNoConfirmation) {
  v1::Timing timing = TimingOfAnAgent();
  for (const int first : {2, 4}) {
    timing.set_first_interleaved(first);
    const std::vector<Record> rows = ToRecords("farm", Measured(timing));
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_FALSE(std::get<Timing>(rows[0].outcome).confirmed) << first;
  }
}

// Impossible values, such as a clock of 0 MHz or an untimed reference, must not cost the whole record.
TEST(ToRecordsTest, ValuesOutOfRangeAreLeftOut) {
  v1::Timing timing = TimingOfAnAgent();
  timing.set_clock_mhz(0);
  timing.set_reference_seconds(0);
  timing.set_drift(std::numeric_limits<double>::quiet_NaN());
  const std::vector<Record> rows = ToRecords("farm", Measured(timing));
  ASSERT_THAT(rows, SizeIs(1));
  const auto& kept = std::get<Timing>(rows[0].outcome);
  EXPECT_EQ(kept.clock_hertz, std::nullopt);
  EXPECT_EQ(kept.reference_seconds, std::nullopt);
  EXPECT_EQ(kept.drift, std::nullopt);
  EXPECT_TRUE(records::Validate(rows[0]).ok()) << records::Validate(rows[0]);
}

}  // namespace
}  // namespace hone::tracker
