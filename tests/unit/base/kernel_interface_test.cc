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
  for (int round = 0; round < 20000; ++round) {
    std::string text = kConv;
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
