// SPDX-License-Identifier: Apache-2.0
#include "tracker/storage_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;
using What = StorageHealth::What;

class StorageHealthTest : public testing::Test {
 protected:
  static absl::Status Full() { return absl::ResourceExhaustedError("no space left on the disk"); }
  StorageHealth storage_health_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
};

TEST_F(StorageHealthTest, AFailureIsLoggedAtOnceAndThenOnceAMinute) {
  EXPECT_EQ(storage_health_.Note(What::kState, absl::OkStatus(), now_), "");
  EXPECT_EQ(storage_health_.FailureReason(now_), "");
  int said = 0;
  for (int i = 0; i < 600; ++i, now_ += absl::Milliseconds(500)) {
    const std::string news = storage_health_.Note(i % 2 == 0 ? What::kState : What::kResults, Full(), now_);
    said += !news.empty();
    if (i == 0) {
      EXPECT_THAT(news, HasSubstr("all programs wait: no space left"));
    }
    EXPECT_EQ(storage_health_.FailureReason(now_), "no space left on the disk");
  }
  EXPECT_EQ(said, 5);
  EXPECT_EQ(storage_health_.Note(What::kState, absl::OkStatus(), now_), "") << "results are stored elsewhere";
  EXPECT_EQ(storage_health_.FailureReason(now_), "no space left on the disk");
  EXPECT_THAT(storage_health_.Note(What::kResults, absl::OkStatus(), now_), HasSubstr("works again"));
  EXPECT_EQ(storage_health_.FailureReason(now_), "");
  EXPECT_THAT(storage_health_.Note(What::kState, Full(), now_), HasSubstr("all programs wait")) << "another time";
}

// The agent that brought the results may be gone for good. While storing fails, no new work is leased whose results
// would show that there is room again.
TEST_F(StorageHealthTest, AFailureOfResultsExpires) {
  storage_health_.Note(What::kResults, Full(), now_);
  now_ += absl::Seconds(10);
  EXPECT_NE(storage_health_.FailureReason(now_), "");
  now_ += absl::Seconds(10);
  EXPECT_EQ(storage_health_.FailureReason(now_), "");
}

}  // namespace
}  // namespace hone::tracker
