// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/resource_limit.h"
#include "base/temporary_folder.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/onnx_import.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::graph {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExternalData : public testing::Test {
 protected:
  ExternalData() {
    fs::create_directory(root_ / "model");
    Write("model/weights.bin", std::string("\0\0\0\0", 4) + Floats({1, 2, 3}));
    Write("secret.bin", Floats({1, 2, 3}));
  }

  void Write(const std::string& name, const std::string& bytes) { std::ofstream(root_ / name) << bytes; }
  static std::string Floats(const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }

  // Imports a model whose only tensor `w` has `floats` floats at the place that the entries name.
  absl::StatusOr<Graph> ImportWith(const std::vector<std::pair<std::string, std::string>>& entries,
                                   int64_t floats = 3) {
    Message tensor;
    tensor.Int(1, floats).Int(2, kFloat).Text(8, "w").Int(14, 1);
    for (const auto& [key, value] : entries) tensor.Text(13, Message().Text(1, key).Text(2, value).bytes());
    GraphBuilder b;
    b.Initializer(tensor.bytes()).Output("w");
    Write("model/m.onnx", b.Model());
    return ImportOnnx((root_ / "model/m.onnx").string(), options_);
  }

  void ExpectError(const std::vector<std::pair<std::string, std::string>>& entries, absl::StatusCode code,
                   const std::string& text) {
    const absl::Status status = ImportWith(entries).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  TemporaryFolder root_ = TemporaryFolder::Create().value();
  ImportOptions options_;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(ExternalData, IsReadFromBesideTheModel) {
  const absl::StatusOr<Graph> graph = ImportWith({{"location", "weights.bin"}, {"offset", "4"}, {"length", "12"}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(ReadConstant<float>(graph->values[graph->outputs[0]]), ElementsAre(1, 2, 3));
}

TEST_F(ExternalData, IsAskedForBeforeItIsRead) {
  options_.may_read = [](const std::string& path) { return absl::AbortedError("not " + path); };
  ExpectError({{"location", "weights.bin"}, {"offset", "4"}}, absl::StatusCode::kAborted, "model/weights.bin");
}

TEST_F(ExternalData, MissingFileIsNamed) {
  ExpectError({{"location", "gone.bin"}}, absl::StatusCode::kNotFound, "'gone.bin' is missing");
}

TEST_F(ExternalData, ShortFile) {
  ExpectError({{"location", "weights.bin"}, {"offset", "8"}}, kInvalid,
              "too short: it has 16 bytes, 12 are needed from offset 8");
}

TEST_F(ExternalData, OffsetsThatOverflow) {
  ExpectError({{"location", "weights.bin"}, {"offset", "9223372036854775807"}}, kInvalid, "too short");
  ExpectError({{"location", "weights.bin"}, {"offset", "99999999999999999999"}}, kInvalid, "too large");
  ExpectError({{"location", "weights.bin"}, {"offset", "-4"}}, kInvalid, "not a number");
  ExpectError({{"location", "weights.bin"}, {"length", ""}}, kInvalid, "not a number");
}

TEST_F(ExternalData, LengthMustFitTheShape) {
  ExpectError({{"location", "weights.bin"}, {"length", "16"}}, kInvalid, "length is 16 bytes, but the shape needs 12");
}

TEST_F(ExternalData, LargerThanAnyTensor) {
  const absl::Status status = ImportWith({{"location", "weights.bin"}}, int64_t{1} << 39).status();
  EXPECT_EQ(status.code(), kInvalid) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 'w': f32[549755813888] would take more than 1 TiB"));
}

TEST_F(ExternalData, MemoryThatIsNotThere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory cannot be limited";
#endif
  fs::resize_file(root_ / "model/weights.bin", uintmax_t{1} << 36);
  const auto import_with_little = [&] {
    LimitMemory(uint64_t{1} << 34);
    const absl::Status status = ImportWith({{"location", "weights.bin"}}, int64_t{1} << 34).status();
    std::cerr << status;
    _exit(absl::IsResourceExhausted(status) ? 0 : 1);
  };
  EXPECT_EXIT(import_with_little(), ::testing::ExitedWithCode(0), "not enough memory for its 68719476736 bytes");
}

TEST_F(ExternalData, StaysInsideTheFolder) {
  const std::string outside = "outside the folder of the model";
  ExpectError({{"location", "../secret.bin"}}, kInvalid, outside);
  ExpectError({{"location", (root_ / "secret.bin").string()}}, kInvalid, outside);
  fs::create_symlink(root_ / "secret.bin", root_ / "model/link.bin");
  ExpectError({{"location", "link.bin"}}, kInvalid, outside);
  ExpectError({{"location", "link.bin"}}, kInvalid,
              "'link.bin' is a link to '" + fs::canonical(root_ / "secret.bin").string());
  ExpectError({{"location", ""}}, kInvalid, "the entry 'location' is missing");
  ExpectError({}, kInvalid, "the entry 'location' is missing");
  ExpectError({{"location", "."}}, absl::StatusCode::kNotFound, "is missing");
}

// The cache of Hugging Face is laid out like this.
TEST_F(ExternalData, ModelAndDataMayBeLinksToOneFolder) {
  ASSERT_TRUE(ImportWith({{"location", "weights.bin"}, {"offset", "4"}}).ok());
  fs::create_directory(root_ / "snapshot");
  fs::create_symlink("../model/m.onnx", root_ / "snapshot/m.onnx");
  const std::string model = (root_ / "snapshot/m.onnx").string();
  EXPECT_TRUE(absl::IsNotFound(ImportOnnx(model, options_).status()));
  fs::create_symlink("../model/weights.bin", root_ / "snapshot/weights.bin");
  const absl::StatusOr<Graph> graph = ImportOnnx(model, options_);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(ReadConstant<float>(graph->values[graph->outputs[0]]), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace hone::graph
