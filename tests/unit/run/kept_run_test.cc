// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/kept_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace hone::run {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<KeptRun> WrittenAndRead(std::span<const ArrayView> arrays) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "kept.npz";
  const NpzWriter writer(arrays);
  std::ofstream file(path, std::ios::binary);
  for (const std::span<const uint8_t> piece : writer.pieces()) {
    file.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
  }
  file.close();
  const absl::StatusOr<NpzReader> reader = NpzReader::Open(path);
  if (!reader.ok()) return reader.status();
  return ReadKept(*reader);
}

TEST(KeptRun, ComesBackAsItWasWritten) {
  KeptRun run;
  run.program = 3;
  run.inputs = {{"a/b", {package::DType::kInt8, {2}, {1, 2}}}};
  run.outputs = {{"program", {package::DType::kUInt8, {}, {7}}}};
  run.tensors = {{2, 40, {package::DType::kBool, {1, 1}, {1}}}, {11, 4, {package::DType::kInt8, {0}, {}}}};
  const absl::StatusOr<KeptRun> read = WrittenAndRead(ArraysOf(run));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->program, 3);
  ASSERT_EQ(read->inputs.size(), 1u);
  EXPECT_EQ(read->inputs[0].name, "a/b");
  EXPECT_EQ(read->inputs[0].array.data, run.inputs[0].array.data);
  ASSERT_EQ(read->outputs.size(), 1u);
  EXPECT_EQ(read->outputs[0].name, "program");
  ASSERT_EQ(read->tensors.size(), 2u);
  EXPECT_EQ(read->tensors[0].call, 2u);
  EXPECT_EQ(read->tensors[0].tensor, 40u);
  EXPECT_EQ(read->tensors[0].array.shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(read->tensors[1].call, 11u);
}

TEST(KeptRun, OtherArraysAreRefused) {
  const uint8_t byte = 0;
  for (const char* name : {"y", "value/1", "value/1/", "value/x/2", "value/1/2/3", "value/-1/2"}) {
    const ArrayView array = {name, package::DType::kUInt8, {}, {&byte, 1}};
    const absl::StatusOr<KeptRun> read = WrittenAndRead({&array, 1});
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("update hone-agent on the device"));
  }
}

}  // namespace
}  // namespace hone::run
