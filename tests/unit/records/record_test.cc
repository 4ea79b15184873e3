// SPDX-License-Identifier: Apache-2.0
#include "records/record.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/records/sample_records.h"

namespace hone::records {
namespace {

using ::testing::HasSubstr;

TEST(FailureKindTest, EveryKindHasANameThatReadsBack) {
  for (const FailureKind kind : kAllFailureKinds) EXPECT_EQ(FailureKindFromName(FailureKindName(kind)), kind);
  EXPECT_EQ(FailureKindName(FailureKind::kOutOfBoundsWrite), "out_of_bounds_write");
  EXPECT_EQ(FailureKindFromName("unlucky"), std::nullopt);
}

TEST(CleanTextTest, ReplacesWhatIsNotTextAndKeepsTheLimit) {
  EXPECT_EQ(CleanText("µs \n ok", 100), "µs \n ok");
  EXPECT_EQ(CleanText(std::string_view("a\0b", 3), 100),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(CleanText("a\xFF", 100), "a\xEF\xBF\xBD");
  EXPECT_EQ(CleanText("aaaa", 3), "aaa");
  const std::string cut = CleanText(std::string(100, '\xFF'), 10);
  EXPECT_EQ(cut, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // nine bytes, because a tenth would be a part of a character
}

TEST(ValidateTest, AcceptsTheSamples) {
  EXPECT_TRUE(Validate(SampleTiming(1, "split oc 16", 1e-3)).ok());
  EXPECT_TRUE(Validate(SampleFailure(1, "", FailureKind::kCrashed)).ok());
}

// Validate must refuse a valid record after `spoil` changed it, with an error that contains `about`.
void ExpectRefused(void (*spoil)(Record&), const char* about) {
  Record record = SampleTiming(1, "split oc 16", 1e-3);
  spoil(record);
  const absl::Status status = Validate(record);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << about;
  EXPECT_THAT(std::string(status.message()), HasSubstr(about));
}

TEST(ValidateTest, NoPartOfTheKeyMayBeEmpty) {
  ExpectRefused([](Record& r) { r.key.workload_digest.clear(); }, "workload.digest");
  ExpectRefused([](Record& r) { r.key.target.clear(); }, "target");
  ExpectRefused([](Record& r) { r.key.device_fingerprint.clear(); }, "device ");
  ExpectRefused([](Record& r) { r.key.compiler_version.clear(); }, "compiler ");
  ExpectRefused([](Record& r) { r.measurement_id.clear(); }, "measurement ");
}

TEST(ValidateTest, TimesAreFiniteAndAboveZero) {
  ExpectRefused([](Record& r) { r.outcome = Timing{}; }, "no repeats");
  ExpectRefused([](Record& r) { r.outcome = Timing{.seconds = {1e-3, 0}}; }, "above 0");
  ExpectRefused([](Record& r) { r.outcome = Timing{.seconds = {-1}}; }, "above 0");
  ExpectRefused([](Record& r) { r.outcome = Timing{.seconds = {std::nan("")}}; }, "finite");
  ExpectRefused([](Record& r) { r.outcome = Timing{.seconds = {1}, .tolerance = -1}; }, "tolerance");
  ExpectRefused([](Record& r) { r.outcome = Timing{.seconds = {1}, .reference_seconds = 0}; }, "reference");
  ExpectRefused([](Record& r) { r.outcome = Timing{.seconds = std::vector<double>(100'001, 1.0)}; }, "100001 repeats");
  ExpectRefused([](Record& r) { std::get<Timing>(r.outcome).clock_hertz = 0; }, "clock_hertz");
  ExpectRefused([](Record& r) { std::get<Timing>(r.outcome).first_interleaved = 4; }, "only 3 repeats");
  ExpectRefused([](Record& r) { r.flops = -1; }, "flops");
  ExpectRefused(
      [](Record& r) { std::get<Timing>(r.outcome).temperature_celsius = std::numeric_limits<double>::infinity(); },
      "temperature");
  ExpectRefused([](Record& r) { r.measured_at = Instant(std::chrono::milliseconds(-1)); }, "measured_at");
}

TEST(ValidateTest, TextIsTextAndBounded) {
  ExpectRefused([](Record& r) { r.schedule = "split \xC3("; }, "schedule is not UTF-8");
  ExpectRefused([](Record& r) { r.key.target = std::string("cpu\0", 4); }, "target is not UTF-8");
  ExpectRefused([](Record& r) { r.schedule = std::string((1 << 20) + 1, 's'); }, "schedule has 1048577 bytes");
}

}  // namespace
}  // namespace hone::records
