// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kConv[] =
    "kernel conv\n"
    "input f32[1,64,56,56]\n"
    "constant f32[64,64,3,3] unused\n"
    "packed f32[2,576,32]\n"
    "output f32[1,64,56,56]\n"
    "workspace f32[1,64,58,58] 0\n"
    "workspace u8[] 861184\n"
    "scratch 861248 64\n"
    "prepare conv_prepare 18 64 1 2\n"
    "launch conv_pad 841 256 0 4\n"
    "launch conv_main 98 128 shared 65536 4 2 3\n";

std::string ErrorOf(const std::string& text) {
  std::string error;
  EXPECT_FALSE(ParseKernelInterface(text, &error).has_value()) << text;
  return error;
}

std::string With(const std::string& from, const std::string& to) {
  std::string text = kConv;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(KernelInterface, TextReadsBack) {
  std::string error;
  const auto parsed = ParseKernelInterface(kConv, &error);
  ASSERT_TRUE(parsed.has_value()) << error;
  EXPECT_EQ(Print(*parsed), kConv);
  EXPECT_EQ(parsed->buffers[0].bytes(), 4 * 64 * 56 * 56);
  EXPECT_EQ(parsed->buffers[5].bytes(), 1);
  EXPECT_FALSE(parsed->buffers[1].used);
  EXPECT_THAT(parsed->Of(BufferRole::kWorkspace), ElementsAre(4, 5));
  EXPECT_EQ(parsed->argument_count(), 4u);
  EXPECT_THAT(parsed->main[1].arguments, ElementsAre(4, 2, 3));
  EXPECT_EQ(parsed->main[0].shared_bytes, 0);
  EXPECT_EQ(parsed->main[1].shared_bytes, 65536);
}

TEST(KernelInterface, SizesComeAfterOutputs) {
  const std::string text = With("workspace f32", "sizes i64[3]\nworkspace f32");
  std::string error;
  EXPECT_FALSE(ParseKernelInterface(With("output f32", "sizes i64[3]\noutput f32"), &error).has_value());
  EXPECT_THAT(error, HasSubstr("out of order"));
  const auto parsed = ParseKernelInterface(text, &error);
  ASSERT_TRUE(parsed.has_value()) << error;
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_THAT(parsed->Of(BufferRole::kSizes), ElementsAre(4));
  EXPECT_EQ(parsed->argument_count(), 5u);
}

// A kernel for n rows of m columns, with a group for each 64 elements.
constexpr char kOpen[] =
    "kernel rows\n"
    "input f32[8,100]\n"
    "output f32[8,100]\n"
    "sizes i64[2]\n"
    "scratch 0 0\n"
    "step multiply 0 1\n"
    "step number 63\n"
    "step add 2 3\n"
    "step number 64\n"
    "step divide 4 5\n"
    "launch rows_0 13 64 groups 6 0 1 2\n"
    "launch rows_1 5 64 groups 0 shared 256 0 1 2\n"
    "launch rows_2 3 64 0 1\n";

std::string OpenWith(const std::string& from, const std::string& to) {
  std::string text = kOpen;
  return text.replace(text.find(from), from.size(), to);
}

TEST(KernelInterface, GroupsFollowFromSizes) {
  std::string error;
  const auto parsed = ParseKernelInterface(kOpen, &error);
  ASSERT_TRUE(parsed.has_value()) << error;
  EXPECT_EQ(Print(*parsed), kOpen);
  EXPECT_EQ(parsed->size_count(), 2u);
  const auto groups = [&](int64_t n, int64_t m) {
    const std::vector<int64_t> values = parsed->ComputeValues(std::vector<int64_t>{n, m});
    std::vector<int64_t> counts;
    for (const KernelLaunch& launch : parsed->main) counts.push_back(launch.GroupsFor(values));
    return counts;
  };
  EXPECT_THAT(groups(8, 100), ElementsAre(13, 5, 3));  // the second launch has at most 5
  EXPECT_THAT(groups(3, 50), ElementsAre(3, 3, 3));
  EXPECT_THAT(groups(0, 100), ElementsAre(0, 0, 3));
  EXPECT_THAT(groups(-7, 100), ElementsAre(0, 0, 3));
}

TEST(KernelInterface, RefusesGroupsThatDoNotFollowFromSizes) {
  EXPECT_THAT(ErrorOf(OpenWith("step add 2 3", "step add 2 4")), HasSubstr("step 2 reads a later value"));
  EXPECT_THAT(ErrorOf(OpenWith("step add", "step plus")), HasSubstr("line 8: expected an operation on sizes"));
  EXPECT_THAT(ErrorOf(OpenWith("step add 2 3", "step add 2")), HasSubstr("expected the numbers of two values"));
  EXPECT_THAT(ErrorOf(OpenWith("number 63", "number 6x")), HasSubstr("expected a number"));
  EXPECT_THAT(ErrorOf(OpenWith("groups 6", "groups 7")),
              HasSubstr("takes its groups from a value that does not exist"));
  EXPECT_THAT(ErrorOf(OpenWith("groups 6", "groups x")), HasSubstr("invalid number of the value for its groups"));
  EXPECT_THAT(ErrorOf(OpenWith("5 64 groups 0", "0 0 groups 0")), HasSubstr("invalid number of the value"));
  EXPECT_THAT(ErrorOf(OpenWith("sizes i64[2]\n", "")), HasSubstr("reads a later value"));
  EXPECT_THAT(ErrorOf(With("prepare conv_prepare 18 64", "prepare conv_prepare 18 64 groups 0")),
              HasSubstr("takes its groups from a value that does not exist"));
}

TEST(KernelInterface, NothingToComputeNeedsNoLaunch) {
  std::string error;
  EXPECT_TRUE(ParseKernelInterface("kernel k\ninput f32[2]\noutput f32[0,2]\nscratch 0 0\n", &error)) << error;
  EXPECT_FALSE(ParseKernelInterface("kernel k\ninput f32[2]\noutput f32[1,2]\nscratch 0 0\n", &error));
}

TEST(KernelInterface, RefusesWhatMakesNoSense) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no name"));
  EXPECT_THAT(ErrorOf("kernel k\n"), HasSubstr("no launch"));
  EXPECT_THAT(ErrorOf(With("kernel conv", "kernel 1conv")), HasSubstr("line 1: expected one kernel name"));
  EXPECT_THAT(ErrorOf(With("input f32[1,64,56,56]", "input f33[1]")), HasSubstr("line 2: expected a type"));
  EXPECT_THAT(ErrorOf(With("input f32[1,64,56,56]", "input f32[1,-4]")), HasSubstr("expected a type"));
  EXPECT_THAT(ErrorOf(With("f32[1,64,56,56]", "f32[4294967296,4294967296,4294967296]")), HasSubstr("expected a type"));
  EXPECT_THAT(ErrorOf(With("input f32", "output f32")), HasSubstr("out of order"));
  EXPECT_THAT(ErrorOf(With("u8[] 861184", "u8[] 861248")), HasSubstr("ends past the end of the workspace"));
  EXPECT_THAT(ErrorOf(With("841 256", "841 0")), HasSubstr("invalid grid"));
  EXPECT_THAT(ErrorOf(With("shared 65536", "shared 0")), HasSubstr("invalid size of shared memory"));
  EXPECT_THAT(ErrorOf(With("256 0 4", "256 0 6")), HasSubstr("uses a buffer that does not exist"));
  EXPECT_THAT(ErrorOf(With("prepare conv_prepare 18 64 1 2\n", "")),
              HasSubstr("packed buffers need launches of prepare"));
  EXPECT_THAT(ErrorOf(With("scratch", "scratches")), HasSubstr("'scratches' is not a known keyword"));
}

TEST(KernelInterface, DamagedTextIsRefusedOrReadsBack) {
  Random random(7);
  for (int round = 0; round < 40000; ++round) {
    std::string text = round % 2 == 0 ? kConv : kOpen;
    for (int64_t change = 1 + random.Below(3); change > 0; --change) {
      const auto at = static_cast<size_t>(random.Below(static_cast<int64_t>(text.size())));
      if (random.Below(2) == 0) {
        text[at] = static_cast<char>(random.Below(256));
      } else {
        text.erase(at, static_cast<size_t>(1 + random.Below(8)));
      }
    }
    std::string error;
    const auto parsed = ParseKernelInterface(text, &error);
    ASSERT_NE(parsed.has_value(), !error.empty()) << text;
    if (!parsed.has_value()) continue;
    ASSERT_EQ(ParseKernelInterface(Print(*parsed), &error), parsed) << text;
  }
}

}  // namespace
}  // namespace hone
