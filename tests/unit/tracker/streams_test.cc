#include "tracker/streams.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tracker/queue/quotas.h"

namespace hone::tracker {
namespace {

TEST(StreamsTest, EachHasSoManyAndAllTogetherToo) {
  Streams streams;
  std::vector<std::unique_ptr<Streams::Stream>> open;
  const auto begin = [&](const std::string& who) {
    auto stream = streams.Begin(who, [] { return true; }, [] {});
    if (stream.ok()) open.push_back(*std::move(stream));
    return stream.status();
  };
  for (int i = 0; i < kQuotas.streams; ++i) ASSERT_TRUE(begin("ann").ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(begin("ann")));
  for (int i = kQuotas.streams; i < kQuotas.streams_of_all; ++i) {
    ASSERT_TRUE(begin(fmt::format("bob{}", i / kQuotas.streams)).ok()) << i;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(begin("carol")));
  open.erase(open.begin());
  EXPECT_TRUE(begin("ann").ok());
}

// As a compiler on a machine of many cores begins.
TEST(StreamsTest, WhoIsPatientGetsHisTurn) {
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

TEST(StreamsTest, WhatNobodyReadsEndsAndASlowReaderGoesOn) {
  Streams streams;
  int ended = 0;
  const auto stream = streams.Begin("ann", [] { return true; }, [&] { ++ended; }).value();
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  streams.Look(now);
  for (int i = 0; i < 10; ++i) {
    stream->Progress();
    now += Streams::kLongestPause;
    streams.Look(now);
    now += Streams::kLongestPause;
    streams.Look(now);
  }
  EXPECT_EQ(ended, 0);
  now += absl::Seconds(1);
  streams.Look(now);
  EXPECT_EQ(ended, 1);
}

TEST(StreamsTest, WhoIsNotWelcomeAnyMoreGetsNoMore) {
  Streams streams;
  bool welcome = true;
  int ended = 0, others = 0;
  const auto revoked = streams.Begin("ann", [&] { return welcome; }, [&] { ++ended; }).value();
  const auto other = streams.Begin("bob", [] { return true; }, [&] { ++others; }).value();
  streams.Look(absl::FromUnixSeconds(1'000'000));
  EXPECT_EQ(ended, 0);
  welcome = false;
  streams.Look(absl::FromUnixSeconds(1'000'001));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(others, 0);
}

}  // namespace
}  // namespace hone::tracker
