// SPDX-License-Identifier: Apache-2.0
#include "cli/until.h"

#include <gtest/gtest.h>

namespace hone::cli {
namespace {

class UntilTest : public testing::Test {
 protected:
  absl::Time At(int day, int hour, int minute) const {
    return absl::FromCivil(absl::CivilMinute(2027, 1, day, hour, minute), here_);
  }
  absl::TimeZone here_ = absl::FixedTimeZone(3600);
  absl::Time now_ = At(10, 22, 30);
};

TEST_F(UntilTest, TimeOfDayMeansItsNextOccurrence) {
  EXPECT_EQ(ParseUntil("07:00", now_, here_).value(), At(11, 7, 0));
  EXPECT_EQ(ParseUntil("7:00", now_, here_).value(), At(11, 7, 0));
  EXPECT_EQ(ParseUntil("23:15", now_, here_).value(), At(10, 23, 15));
  EXPECT_EQ(ParseUntil("22:30", now_, here_).value(), At(11, 22, 30)) << "this minute has begun";
}

TEST_F(UntilTest, AmbiguousOrSkippedLocalTimeIsResolved) {
  absl::TimeZone berlin;
  if (!absl::LoadTimeZone("Europe/Berlin", &berlin)) GTEST_SKIP() << "this system has no table of time zones";
  const auto utc = [](int month, int day, int hour, int minute) {
    return absl::FromCivil(absl::CivilMinute(2027, month, day, hour, minute), absl::UTCTimeZone());
  };
  // At 1:00 UTC from 03:00 back to 02:00.
  EXPECT_EQ(ParseUntil("02:45", utc(10, 31, 0, 10), berlin).value(), utc(10, 31, 0, 45));
  EXPECT_EQ(ParseUntil("02:45", utc(10, 31, 0, 50), berlin).value(), utc(10, 31, 1, 45));
  EXPECT_EQ(ParseUntil("02:45", utc(10, 31, 1, 10), berlin).value(), utc(10, 31, 1, 45));
  EXPECT_EQ(ParseUntil("02:45", utc(10, 31, 1, 50), berlin).value(), utc(11, 1, 1, 45));
  // At 1:00 UTC from 02:00 on to 03:00.
  EXPECT_EQ(ParseUntil("02:45", utc(3, 28, 0, 10), berlin).value(), utc(3, 28, 1, 0));
  EXPECT_EQ(ParseUntil("02:45", utc(3, 28, 1, 10), berlin).value(), utc(3, 29, 0, 45));
}

TEST_F(UntilTest, InstantIsKept) {
  EXPECT_EQ(ParseUntil("2027-01-11T05:00:00Z", now_, here_).value(), At(11, 6, 0));
  EXPECT_EQ(ParseUntil("2027-01-11T05:00:00+03:00", now_, here_).value(), At(11, 3, 0));
}

TEST_F(UntilTest, InvalidOrPastTimeIsRefused) {
  for (const char* text :
       {"", "7", "24:00", "07:60", "0x:00", "07.00", "tomorrow", "2027-01-11", "2027-01-10T21:00:00Z"}) {
    EXPECT_FALSE(ParseUntil(text, now_, here_).ok()) << text;
  }
}

}  // namespace
}  // namespace hone::cli
