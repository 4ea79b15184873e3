// SPDX-License-Identifier: Apache-2.0
// The tests' own material: models that are the same at every call, and arrays that come back as they were written.
#include <bit>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/broken_models.h"
#include "tests/models/expected_outputs.h"
#include "tests/models/npz_file.h"
#include "tests/models/sample_models.h"

namespace hone::models {
namespace {

TEST(SampleModels, AreTheSameAtEveryCall) {
  const std::vector<SampleModel> first = SampleModels(), second = SampleModels();
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(first[0].name, "super_resolution");
  std::set<std::string> names;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].model.SerializeAsString(), second[i].model.SerializeAsString()) << first[i].name;
    EXPECT_TRUE(names.insert(first[i].name).second) << first[i].name;
  }
}

// Every value that a node reads is made by a node before it, or is an input or a weight.
TEST(SampleModels, AreOrdered) {
  for (const SampleModel& sample : SampleModels()) {
    std::set<std::string> known;
    for (const auto& input : sample.model.graph().input()) known.insert(input.name());
    for (const auto& weight : sample.model.graph().initializer()) known.insert(weight.name());
    for (const onnx::NodeProto& node : sample.model.graph().node()) {
      for (const std::string& input : node.input()) EXPECT_TRUE(known.contains(input)) << sample.name << ": " << input;
      known.insert(node.output().begin(), node.output().end());
    }
    for (const auto& output : sample.model.graph().output()) EXPECT_TRUE(known.contains(output.name()));
  }
}

TEST(BitFlips, ChangeOneBitEach) {
  const std::string bytes(100, 'a');
  for (const std::string& flipped : BitFlips(bytes, 20)) {
    int bits = 0;
    for (size_t i = 0; i < bytes.size(); ++i) bits += std::popcount(static_cast<unsigned char>(bytes[i] ^ flipped[i]));
    EXPECT_EQ(bits, 1);
  }
}

NpyArray Array(const std::string& descr, std::vector<int64_t> shape, const std::string& bytes) {
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {descr, std::move(shape), {first, first + bytes.size()}};
}

TEST(NpzFile, ReadsBackWhatItWrote) {
  const std::string path = testing::TempDir() + "hone_models_test.npz";
  const NpzArrays written = {{"scalar", Array("<i8", {}, std::string(8, '\1'))},
                             {"row", Array("<f4", {3}, std::string(12, '\2'))},
                             {"matrix", Array("|u1", {2, 3}, "abcdef")},
                             {"empty", Array("<f4", {0, 4}, "")}};
  ASSERT_TRUE(WriteNpz(path, written).ok());
  const auto read = ReadNpz(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), written.size());
  for (const auto& [name, array] : written) {
    EXPECT_EQ(read->at(name).descr, array.descr) << name;
    EXPECT_EQ(read->at(name).shape, array.shape) << name;
    EXPECT_EQ(read->at(name).bytes, array.bytes) << name;
  }
  std::remove(path.c_str());
}

TEST(ExpectedOutputs, MeasuresTheLargestDeviation) {
  const std::string path = testing::TempDir() + "hone_expected_outputs.txt";
  std::ofstream(path) << "# model output shape index value\nm y 2 0 4.0\nm y 2 1 2.0\nother y 2 0 9.0\n";
  const float values[] = {4.0f, 2.5f};
  const std::string bytes(reinterpret_cast<const char*>(values), sizeof(values));
  EXPECT_DOUBLE_EQ(*LargestDeviation({{"y", Array("<f4", {2}, bytes)}}, path, "m"), 0.125);
  EXPECT_FALSE(LargestDeviation({{"y", Array("<f4", {1, 2}, bytes)}}, path, "m").ok());
  EXPECT_FALSE(LargestDeviation({{"z", Array("<f4", {2}, bytes)}}, path, "m").ok());
  EXPECT_FALSE(LargestDeviation({{"y", Array("<f4", {2}, bytes)}}, path, "unknown").ok());
  std::remove(path.c_str());
}

TEST(NpzFile, RefusesWhatIsNoArchive) {
  const std::string path = testing::TempDir() + "hone_models_test.txt";
  std::ofstream(path) << "a letter";
  EXPECT_FALSE(ReadNpz(path).ok());
  std::remove(path.c_str());
  EXPECT_FALSE(ReadNpz(path).ok());
  EXPECT_FALSE(WriteNpz("/nonexistent/folder/a.npz", {{"a", Array("|u1", {1}, "a")}}).ok());
}

}  // namespace
}  // namespace hone::models
