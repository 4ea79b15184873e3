// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::package {
namespace {

using ::testing::HasSubstr;

TEST(MetadataTest, SurvivesTheRoundTrip) {
  const PackageMetadata metadata = {
      .model_name = "resnet \"18\"",
      .compiler_version = "0.1.0",
      .programs = {{"opencl", {}},
                   {"cpu -threads=2", {{"k0", "Conv", "abc", "split(oc, 32)\nvectorize(oc.1)", 2.5e9, 1e6}}}},
      .input_ranges = {{"ids", 0, 30522}}};
  const absl::StatusOr<PackageMetadata> parsed = ParseMetadata(ToJson(metadata));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->model_name, metadata.model_name);
  EXPECT_EQ(parsed->compiler_version, metadata.compiler_version);
  ASSERT_EQ(parsed->programs.size(), 2u);
  EXPECT_EQ(parsed->programs[0].target, "opencl");
  const ProgramMetadata& program = parsed->programs[1];
  EXPECT_EQ(program.target, "cpu -threads=2");
  ASSERT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(program.kernels[0].symbol, "k0");
  EXPECT_EQ(program.kernels[0].operator_name, "Conv");
  EXPECT_EQ(program.kernels[0].workload_digest, "abc");
  EXPECT_EQ(program.kernels[0].schedule, metadata.programs[1].kernels[0].schedule);
  EXPECT_EQ(program.kernels[0].flops, 2.5e9);
  EXPECT_EQ(program.kernels[0].bytes, 1e6);
  ASSERT_EQ(parsed->input_ranges.size(), 1u);
  EXPECT_EQ(parsed->input_ranges[0].name, "ids");
  EXPECT_EQ(parsed->input_ranges[0].high, 30522);
}

TEST(MetadataTest, MissingFieldsKeepTheirDefaultsAndUnknownOnesAreIgnored) {
  const absl::StatusOr<PackageMetadata> parsed =
      ParseMetadata(R"({"programs": [{"kernels": [{"symbol": "k"}]}], "later": [1]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->programs[0].kernels[0].symbol, "k");
  EXPECT_EQ(parsed->programs[0].kernels[0].flops, 0);
}

TEST(MetadataTest, ANameThatIsNotUtf8DoesNotStopTheWriter) {
  const absl::StatusOr<PackageMetadata> parsed = ParseMetadata(ToJson({.model_name = "a\xff"
                                                                                     "b"}));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->model_name,
            "a\xef\xbf\xbd"
            "b");
}

TEST(MetadataTest, OtherTextsAreRefused) {
  for (const char* text : {"", "{", "[1]", R"({"programs": 3})", R"({"programs": [3]})",
                           R"({"programs": [{"kernels": [3]}]})", R"({"model": 1})"}) {
    const absl::Status status = ParseMetadata(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the metadata of the package is damaged or not written by hone"))
        << text;
  }
}

// A hostile package may have deeply nested lists. A reader that recurses into each list would overflow the stack.
TEST(MetadataTest, DeepListsAreRefused) {
  constexpr size_t kDepth = 1'000'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  for (const std::string& text :
       {std::string(kDepth, '['), R"({"programs": )" + deep + "}", R"({"programs": [{"kernels": )" + deep + "}]}",
        R"({"input_ranges": )" + deep + "}"}) {
    EXPECT_EQ(ParseMetadata(text).status().code(), absl::StatusCode::kDataLoss) << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace hone::package
