// SPDX-License-Identifier: Apache-2.0
#include "tracker/streams.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tracker/queue/quotas.h"

namespace hone::tracker {
namespace {

TEST(StreamsTest, LimitsStreamsPerCallerAndInAll) {
  Streams streams;
  std::vector<std::unique_ptr<Streams::Stream>> open;
  const auto begin = [&](const std::string& who) {
    auto stream = streams.Begin(who, [] { return true; }, [] {});
    if (stream.ok()) open.push_back(*std::move(stream));
    return stream.status();
  };
  for (int i = 0; i < kQuotas.streams; ++i) ASSERT_TRUE(begin("ann").ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(begin("ann")));
  for (int i = kQuotas.streams; i < kQuotas.streams_total; ++i) {
    ASSERT_TRUE(begin(fmt::format("bob{}", i / kQuotas.streams)).ok()) << i;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(begin("carol")));
  open.erase(open.begin());
  EXPECT_TRUE(begin("ann").ok());
}

// A compiler on a machine with many cores makes many calls at once.
TEST(StreamsTest, AWaitingCallGetsTheNextStream) {
  Streams streams;
  std::atomic<int> done = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4 * kQuotas.streams; ++i) {
    threads.emplace_back([&] {
      const auto stream = streams.Begin("ann", [] { return true; }, [] {}, absl::Minutes(5));
      done += stream.ok() ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(done, 4 * kQuotas.streams);
}

// Every waiting call holds a thread.
TEST(StreamsTest, LimitsWaitingCallsAndDropsGoneCallers) {
  Streams streams;
  std::vector<std::unique_ptr<Streams::Stream>> open;
  for (int i = 0; i < kQuotas.streams; ++i) {
    open.push_back(streams.Begin("ann", [] { return true; }, [] {}).value());
  }
  std::atomic<bool> there = true;
  std::atomic<int> cancelled = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kQuotas.stream_waits; ++i) {
    threads.emplace_back([&] {
      const auto stream = streams.Begin("ann", [&] { return there.load(); }, [] {}, absl::Minutes(5));
      cancelled += absl::IsCancelled(stream.status()) ? 1 : 0;
    });
  }
  const std::string too_many = fmt::format("{} calls of 'ann' already wait", kQuotas.stream_waits);
  std::string refused;
  for (int i = 0; i < 6000 && refused.find(too_many) == std::string::npos; ++i) {
    refused = std::string(streams.Begin("ann", [] { return true; }, [] {}).status().message());
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(refused, testing::HasSubstr(too_many));
  EXPECT_TRUE(streams.Begin("bob", [] { return true; }, [] {}).ok());
  there = false;
  threads.clear();
  EXPECT_EQ(cancelled, kQuotas.stream_waits);
}

TEST(StreamsTest, AnUnreadStreamEndsAndASlowOneStays) {
  Streams streams;
  int ended = 0;
  const auto stream = streams.Begin("ann", [] { return true; }, [&] { ++ended; }).value();
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  streams.EndStalledStreams(now);
  for (int i = 0; i < 10; ++i) {
    stream->Progress();
    now += Streams::kPauseMax;
    streams.EndStalledStreams(now);
    now += Streams::kPauseMax;
    streams.EndStalledStreams(now);
  }
  EXPECT_EQ(ended, 0);
  now += absl::Seconds(1);
  streams.EndStalledStreams(now);
  EXPECT_EQ(ended, 1);
}

TEST(StreamsTest, AStreamOfARevokedCallerEnds) {
  Streams streams;
  bool allowed = true;
  int ended = 0, others = 0;
  const auto revoked = streams.Begin("ann", [&] { return allowed; }, [&] { ++ended; }).value();
  const auto other = streams.Begin("bob", [] { return true; }, [&] { ++others; }).value();
  streams.EndStalledStreams(absl::FromUnixSeconds(1'000'000));
  EXPECT_EQ(ended, 0);
  allowed = false;
  streams.EndStalledStreams(absl::FromUnixSeconds(1'000'001));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(others, 0);
}

}  // namespace
}  // namespace hone::tracker
