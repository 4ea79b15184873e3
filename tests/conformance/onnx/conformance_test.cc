// SPDX-License-Identifier: Apache-2.0
// The runner itself: it must recognize a wrong output, a crash and a hang.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/onnx/case_lists.h"
#include "tests/conformance/onnx/compare_tensors.h"
#include "tests/conformance/onnx/conformance_case.h"
#include "tests/conformance/onnx/forked_run.h"

namespace hone::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
graph::Constant Tensor(ir::DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {{dtype, std::move(shape)}, std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

graph::Constant Floats(const std::vector<float>& values) {
  return Tensor<float>(ir::DType::kFloat32, {static_cast<int64_t>(values.size())}, values);
}

std::string Difference(const graph::Constant& actual, const graph::Constant& expected) {
  return std::string(CompareTensors(actual, expected).message());
}

TEST(CompareTensors, AllowsFloatsWithinTheTolerance) {
  EXPECT_EQ(Difference(Floats({1.0005f, 100.05f, 0.0009f}), Floats({1.0f, 100.0f, 0.0f})), "");
}

TEST(CompareTensors, NamesTheWorstElement) {
  EXPECT_THAT(Difference(Floats({1.0f, 1.01f, 3.0f}), Floats({1.0f, 1.0f, 2.0f})), HasSubstr("element 2 is 3"));
}

TEST(CompareTensors, AllowsMoreForRoundedFactors) {
  EXPECT_EQ(CompareTensors(Floats({0.0009f, 4.0f}), Floats({0.0f, 4.0f}), true), absl::OkStatus());
  EXPECT_NE(CompareTensors(Floats({0.0009f, 4.0f}), Floats({0.0f, 4.0f})), absl::OkStatus());
  EXPECT_NE(CompareTensors(Floats({0.005f, 4.0f}), Floats({0.0f, 4.0f}), true), absl::OkStatus());
}

TEST(CompareTensors, NanEqualsOnlyNan) {
  EXPECT_EQ(Difference(Floats({NAN}), Floats({NAN})), "");
  EXPECT_NE(Difference(Floats({NAN}), Floats({1.0f})), "");
  EXPECT_NE(Difference(Floats({1.0f}), Floats({NAN})), "");
  EXPECT_NE(Difference(Floats({INFINITY}), Floats({-INFINITY})), "");
}

TEST(CompareTensors, WantsIntegersEqual) {
  const auto small = Tensor<int8_t>(ir::DType::kInt8, {2}, {1, -1});
  EXPECT_EQ(Difference(small, small), "");
  EXPECT_THAT(Difference(Tensor<int8_t>(ir::DType::kInt8, {2}, {1, 127}), small),
              HasSubstr("element 1 is 127, should be -1"));
}

TEST(CompareTensors, WantsTypeAndShapeEqual) {
  EXPECT_THAT(Difference(Floats({1.0f}), Tensor<double>(ir::DType::kFloat64, {1}, {1.0})), HasSubstr("the type is"));
  EXPECT_THAT(Difference(Floats({1.0f}), Tensor<float>(ir::DType::kFloat32, {}, {1.0f})), HasSubstr("the shape is"));
}

TEST(CompareTensors, ReadsHalves) {
  const auto one = Tensor<uint16_t>(ir::DType::kFloat16, {1}, {0x3c00});
  EXPECT_EQ(Difference(Tensor<uint16_t>(ir::DType::kFloat16, {1}, {0x3c01}), one), "");
  EXPECT_THAT(Difference(Tensor<uint16_t>(ir::DType::kFloat16, {1}, {0x4000}), one), HasSubstr("is 2, should be 1"));
  EXPECT_THAT(Difference(Tensor<uint16_t>(ir::DType::kFloat16, {1}, {0x7c00}), one), HasSubstr("is inf"));
}

TEST(ForkedRun, TellsSuccessErrorCrashAndHangApart) {
  std::map<size_t, absl::Status> results;
  const auto work = [](size_t i) {
    if (i == 1) return absl::UnimplementedError("no operator Loop");
    if (i == 2) std::raise(SIGSEGV);
    if (i == 3) pause();
    if (i == 4) _exit(7);
    return absl::OkStatus();
  };
  ForkedRun(5, {.jobs = 5, .timeout_seconds = 1}, work,
            [&](size_t i, const absl::Status& status) { results[i] = status; });
  ASSERT_EQ(results.size(), 5u);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1], absl::UnimplementedError("no operator Loop"));
  EXPECT_THAT(std::string(results[2].message()), HasSubstr("crashed"));
  EXPECT_THAT(std::string(results[3].message()), HasSubstr("timed out"));
  EXPECT_THAT(std::string(results[4].message()), HasSubstr("exit code 7"));
}

TEST(ForkedRun, ChildrenKeepWhatTheyOpenAndAreReplacedWhenTheyDie) {
  std::map<size_t, absl::Status> results;
  int pieces = 0;
  const auto work = [&](size_t i) {
    if (i == 10) std::raise(SIGSEGV);
    return absl::CancelledError(std::to_string(++pieces));
  };
  ForkedRun(30, {.jobs = 1, .timeout_seconds = 60}, work,
            [&](size_t i, const absl::Status& status) { results[i] = status; });
  ASSERT_EQ(results.size(), 30u);
  EXPECT_EQ(results[9], absl::CancelledError("10"));
  EXPECT_THAT(std::string(results[10].message()), HasSubstr("crashed"));
  EXPECT_EQ(results[11], absl::CancelledError("1"));
  EXPECT_EQ(results[29], absl::CancelledError("19"));
  EXPECT_EQ(pieces, 0);
}

TEST(CaseLists, ReadBackWhatWasWritten) {
  const std::string folder = testing::TempDir() + "hone_case_lists";
  std::filesystem::create_directories(folder);
  const std::map<std::string, absl::Status> results = {
      {"node/test_abs", absl::OkStatus()}, {"node/test_loop", absl::UnimplementedError("node 'a':\nno operator Loop")}};
  ASSERT_TRUE(WriteCaseLists(folder, results).ok());
  EXPECT_THAT(*ReadCaseList(folder + "/supported.txt"), ElementsAre("node/test_abs"));
  EXPECT_THAT(*ReadCaseList(folder + "/unsupported.txt"), ElementsAre("node/test_loop"));
  EXPECT_THAT(*ReadReasons(folder + "/unsupported.txt"),
              ElementsAre(testing::Pair("node/test_loop", "node 'a': no operator Loop")));
  std::ofstream(folder + "/explanations.txt") << "# by hand\nnode/test_l: Loops: all of them.\nnode/test_lo: Longer.\n";
  ASSERT_TRUE(WriteCaseLists(folder, results).ok());
  std::ifstream written(folder + "/unsupported.txt");
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_THAT(text, HasSubstr("\n# Longer.\nnode/test_loop: node"));
  EXPECT_THAT(text, testing::Not(HasSubstr("Loops")));
  EXPECT_THAT(*ReadCaseList(folder + "/unsupported.txt"), ElementsAre("node/test_loop"));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(ReadCaseList(folder + "/supported.txt").ok());
}

TEST(ConformanceCase, LoadsEveryTypeOfTensorOrSaysWhyNot) {
  const auto abs = LoadCase(HONE_ONNX_TESTDATA, "node/test_abs");
  ASSERT_TRUE(abs.ok()) << abs.status();
  ASSERT_EQ(abs->inputs.size(), 1u);
  EXPECT_EQ(abs->inputs[0].value.type, (graph::TensorType{ir::DType::kFloat32, {3, 4, 5}}));
  EXPECT_FALSE(CompareTensors(abs->inputs[0].value, abs->expected[0].value).ok());
  const auto sequence = LoadCase(HONE_ONNX_TESTDATA, "node/test_sequence_insert_at_back");
  ASSERT_TRUE(sequence.ok()) << sequence.status();
  ASSERT_EQ(sequence->inputs.size(), 4u) << "three elements and a tensor";
  EXPECT_EQ(sequence->inputs[2].name, "sequence.2");
  const auto optional = LoadCase(HONE_ONNX_TESTDATA, "node/test_optional_has_element_empty");
  EXPECT_THAT(std::string(optional.status().message()), HasSubstr("an optional value is absent"));
  EXPECT_FALSE(LoadCase(HONE_ONNX_TESTDATA, "node/test_of_nothing").ok());
  EXPECT_FALSE(ListCases("/nonexistent").ok());
}

// The lists must name every case once, and every failing case must have a reason.
TEST(CaseLists, CoverEveryCase) {
  const auto all = ListCases(HONE_ONNX_TESTDATA);
  auto listed = ReadCaseList(HONE_CASE_LISTS "/supported.txt");
  const auto unsupported = ReadCaseList(HONE_CASE_LISTS "/unsupported.txt");
  ASSERT_TRUE(all.ok() && listed.ok() && unsupported.ok());
  listed->insert(listed->end(), unsupported->begin(), unsupported->end());
  EXPECT_THAT(*listed, testing::UnorderedElementsAreArray(*all));
}

}  // namespace
}  // namespace hone::conformance
