// SPDX-License-Identifier: Apache-2.0
#include "base/size_points.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(SizePointsTest, APrintedTextParsesBack) {
  const std::vector<SizePoint> points = {{{"n0", 11}, {"n1", 0}}, {{"n0", 128}, {"n1", 512}}};
  EXPECT_EQ(PrintSizePoints(points), "n0=11,n1=0;n0=128,n1=512");
  EXPECT_EQ(ParseSizePoints(PrintSizePoints(points)), points);
  EXPECT_EQ(PrintSizePoints({}), "");
  EXPECT_EQ(ParseSizePoints(""), std::vector<SizePoint>());
  EXPECT_THAT(ParseSizePoints("n=7"), Optional(ElementsAre(ElementsAre(NamedSize{"n", 7}))));
}

TEST(SizePointsTest, OtherTextsAreRefused) {
  for (const char* text : {";", "n", "n=", "=1", "n=x", "n=1x", "n=-1", "n=1;", "n=1,", "n=1;m=2", "n=1;n=2,m=3",
                           "n=99999999999999999999", "n=1,m=2;m=2,n=1"}) {
    EXPECT_EQ(ParseSizePoints(text), std::nullopt) << text;
  }
}

TEST(SizePointsTest, TheirNumberHasALimit) {
  std::string text = "n=0";
  for (size_t i = 1; i < kSizePointsMax; ++i) text += ";n=" + std::to_string(i);
  ASSERT_TRUE(ParseSizePoints(text).has_value());
  EXPECT_EQ(ParseSizePoints(text)->size(), kSizePointsMax);
  EXPECT_FALSE(ParseSizePoints(text + ";n=1").has_value());
}

TEST(SizePointsTest, TheMiddleOfARangeIsInIt) {
  EXPECT_EQ(GeometricMiddle(1, 100), 10);
  EXPECT_EQ(GeometricMiddle(0, 64), 8);
  EXPECT_EQ(GeometricMiddle(7, 7), 7);
  EXPECT_EQ(GeometricMiddle(0, 0), 0);
}

}  // namespace
}  // namespace hone
