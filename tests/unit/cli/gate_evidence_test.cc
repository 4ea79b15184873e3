// SPDX-License-Identifier: Apache-2.0
#include "cli/gate_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

// A gate in which the package takes `slower` times as long as the baseline.
GateResult Result(double slower) {
  GateResult result;
  result.device = "board/cpu";
  result.target = "cpu";
  result.time = absl::FromUnixSeconds(1'000'000'000);
  for (int i = 0; i < 100; ++i) {
    const double seconds = 1e-3 * (1 + 0.01 * (i % 5));
    result.baseline.seconds.push_back(seconds);
    result.package.seconds.push_back(seconds * slower * (1 + 0.001 * (i % 3)));
  }
  result.baseline.name = "before.hone";
  result.package.name = "after.hone";
  result.ratio = *ComparePaired(result.baseline.seconds, result.package.seconds);
  return result;
}

TEST(GateEvidenceTest, AStatementIsReadAsItWasMade) {
  for (const double slower : {1.0, 1.1}) {
    const GateResult result = Result(slower);
    const absl::StatusOr<GateResult> read = ReadStatement(MakeStatement(result));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(GateToJson(*read), GateToJson(result));
    EXPECT_EQ(read->IsSlower(), slower > 1);
  }
}

TEST(GateEvidenceTest, AVerdictThatDoesNotFollowFromTheTimesIsFound) {
  std::string statement = MakeStatement(Result(1.1));
  const size_t at = statement.find("\"slower\":true");
  ASSERT_NE(at, std::string::npos);
  statement.replace(at, 13, "\"slower\":false");
  EXPECT_THAT(std::string(ReadStatement(statement).status().message()), HasSubstr("does not follow from its times"));
}

TEST(GateEvidenceTest, WhatIsNoStatementIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"device\": 1}", "null", "not json"}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadStatement(text).status())) << text;
  }
}

TEST(GateEvidenceTest, TheTextNamesBothPackagesAndTheLimit) {
  EXPECT_THAT(GateToText(Result(1.1)), HasSubstr("slower on board/cpu: after.hone is 10.11% slower than before.hone"));
  EXPECT_THAT(GateToText(Result(1.1)), HasSubstr("the limit is 3.00% slower"));
  EXPECT_THAT(GateToText(Result(0.9)), HasSubstr("passed on board/cpu: after.hone is 9.91% faster than before.hone"));
}

}  // namespace
}  // namespace hone::cli
