// SPDX-License-Identifier: Apache-2.0
// Caches that are updated in place: an output that equals an input except for some rows, in the input's memory.
//
// Each model is run with separate memory and in place. The bytes that a run in place writes are counted by the pages
// that may be written: all others are protected, so that a write to them would end the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "compiler/graph/plan.h"
#include "compiler/target/host.h"
#include "deploy/package/compile_model.h"
#include "deploy/runtime/hone.h"
#include "tests/models/model_builder.h"

namespace hone::conformance {
namespace {

using graph::DimRange;
using models::ModelBuilder;
using ::testing::HasSubstr;
using Extents = std::vector<int64_t>;

constexpr size_t kPage = 4096;
constexpr int64_t kHeads = 2, kCapacity = 64, kSize = 64;  // 16 rows of a head fill a page
constexpr size_t kCacheBytes = kHeads * kCapacity * kSize * sizeof(float);

// Pages of memory whose neighbours are mapped, too.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    all_ = mmap(nullptr, bytes_ + 2 * kAround, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HONE_CHECK(all_ != MAP_FAILED);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(all_, bytes_ + 2 * kAround); }

  float* floats() const { return reinterpret_cast<float*>(static_cast<std::byte*>(all_) + kAround); }
  std::vector<float> Values() const { return {floats(), floats() + bytes_ / sizeof(float)}; }
  void Protect(size_t first, size_t count, int protection) const {
    HONE_CHECK(mprotect(reinterpret_cast<std::byte*>(floats()) + first * kPage, count * kPage, protection) == 0);
  }

 private:
  static constexpr size_t kAround = size_t{1} << 20;
  size_t bytes_;
  void* all_;
};

void Fill(float* values, size_t count, Random& random) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.Uniform() * 2 - 1);
}

class InPlace : public ::testing::Test {
 protected:
  // Compiles and loads a model. shapes: of inputs with open dimensions.
  void Load(const std::function<void(ModelBuilder&)>& build, std::map<std::string, std::vector<DimRange>> shapes = {}) {
    ModelBuilder builder("in_place", 24);
    build(builder);
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << builder.model().SerializeAsString();
    graph::ImportOptions import;
    import.shapes = std::move(shapes);
    package::KernelOptions options;
    options.target = target::HostCpu();
    options.threads = 2;
    const auto summary = package::CompileModel(folder_ / "model.onnx", import, {&options, 1}, folder_ / "model.hone");
    ASSERT_TRUE(summary.ok()) << summary.status();
    const HoneLoadOptions load = {sizeof(HoneLoadOptions), 2, 0};
    HoneModel* loaded = nullptr;
    ASSERT_EQ(hone_load((folder_ / "model.hone").c_str(), &load, &loaded), HONE_OK) << hone_error();
    model_.reset(loaded);
  }

  static DLTensor View(void* data, Extents& shape, uint8_t code = kDLFloat, uint8_t bits = 32) {
    return {data, {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {code, bits, 1}, shape.data(), nullptr, 0};
  }

  size_t IndexOf(const std::string& name) const {
    for (size_t i = 0; i < hone_input_count(model_.get()); ++i) {
      HonePort port;
      EXPECT_EQ(hone_input(model_.get(), i, &port), HONE_OK);
      if (name == port.name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  void SetFloats(const std::string& name, std::vector<float> values, Extents shape) {
    const DLTensor view = View(values.data(), shape);
    EXPECT_EQ(hone_set_input(model_.get(), IndexOf(name), &view), HONE_OK) << hone_error();
  }

  void SetInts(const std::string& name, std::vector<int64_t> values, Extents shape) {
    const DLTensor view = View(values.data(), shape, kDLInt, 64);
    EXPECT_EQ(hone_set_input(model_.get(), IndexOf(name), &view), HONE_OK) << hone_error();
  }

  HoneStatus Bind(const std::string& input, size_t output, float* from, float* to) {
    DLTensor view = View(from, cache_shape_);
    EXPECT_EQ(hone_bind_input(model_.get(), IndexOf(input), &view), HONE_OK) << hone_error();
    view.data = to;
    return hone_bind_output(model_.get(), output, &view);
  }

  std::vector<float> Output(size_t index) const {
    DLTensor view;
    EXPECT_EQ(hone_get_output(model_.get(), index, &view), HONE_OK) << hone_error();
    size_t count = 1;
    for (int d = 0; d < view.ndim; ++d) count *= static_cast<size_t>(view.shape[d]);
    const auto* first = static_cast<const float*>(view.data);
    return {first, first + count};
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  Random random_{3};
  Extents cache_shape_ = {1, kHeads, kCapacity, kSize};
  std::unique_ptr<HoneModel, decltype(&hone_free)> model_ = {nullptr, &hone_free};
};

// present = cache with the doubled rows from `start` on; sums of all positions.
void BuildUpdate(ModelBuilder& b) {
  const std::string cache = b.Input("cache", {1, kHeads, kCapacity, kSize});
  const std::string rows = b.Node("Mul", {b.Input("rows", {1, kHeads, -1, kSize}), b.Scalar(2)});
  const std::string start = b.Input("start", {1}, onnx::TensorProto::INT64);
  const std::string present = b.Node("TensorScatter", {cache, rows, start}, {{"axis", int64_t{2}}});
  b.Output(present);
  b.Output(b.Node("ReduceSum", {present, b.Int64s({2})}, {{"keepdims", int64_t{0}}}));
}

const std::map<std::string, std::vector<DimRange>> kOpenRows = {{"rows", {1, kHeads, DimRange(1, 8), kSize}}};

TEST_F(InPlace, EqualsASeparateOutput) {
  Load(BuildUpdate, kOpenRows);
  EXPECT_EQ(hone_updated_input(model_.get(), 0), 0);
  EXPECT_EQ(hone_updated_input(model_.get(), 1), -1);
  EXPECT_EQ(hone_updated_input(model_.get(), 2), -1);
  Pages cache(kCacheBytes), other(kCacheBytes);
  for (const int64_t count : {8, 1, 3}) {
    for (const int64_t start :
         {int64_t{0}, int64_t{5}, kCapacity - 2, kCapacity, int64_t{-2}, int64_t{-9}, INT64_MIN, INT64_MAX}) {
      SCOPED_TRACE(testing::PrintToString(start) + " " + testing::PrintToString(count));
      std::vector<float> rows(static_cast<size_t>(kHeads * count * kSize));
      Fill(rows.data(), rows.size(), random_);
      Fill(cache.floats(), kCacheBytes / sizeof(float), random_);
      SetFloats("rows", rows, {1, kHeads, count, kSize});
      SetInts("start", {start}, {1});
      ASSERT_EQ(Bind("cache", 0, cache.floats(), other.floats()), HONE_OK) << hone_error();
      ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
      const std::vector<float> expected = other.Values(), sums = Output(1);
      ASSERT_EQ(Bind("cache", 0, cache.floats(), cache.floats()), HONE_OK) << hone_error();
      ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
      EXPECT_EQ(cache.Values(), expected);
      EXPECT_EQ(Output(1), sums);
    }
  }
}

// The run may write one page of each head, with the new row. Every other page is protected.
TEST_F(InPlace, WritesOnlyTheRows) {
  Load(BuildUpdate, kOpenRows);
  Pages cache(kCacheBytes);
  constexpr size_t kPages = kCacheBytes / kPage, kPagesOfHead = kPages / kHeads, kWritten = 2;
  SetFloats("rows", std::vector<float>(kHeads * kSize, 3), {1, kHeads, 1, kSize});
  SetInts("start", {37}, {1});  // in page 2 of its head
  ASSERT_EQ(Bind("cache", 0, cache.floats(), cache.floats()), HONE_OK) << hone_error();
  cache.Protect(0, kPages, PROT_READ);
  for (size_t head = 0; head < kHeads; ++head) {
    cache.Protect(head * kPagesOfHead + kWritten, 1, PROT_READ | PROT_WRITE);
  }
  ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
  const std::vector<float> values = cache.Values();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t position = static_cast<int64_t>(i) / kSize % kCapacity;
    ASSERT_EQ(values[i], position == 37 ? 6 : 0) << i;
  }
}

TEST_F(InPlace, OtherOverlapsAreRefused) {
  Load(BuildUpdate, kOpenRows);
  Pages cache(2 * kCacheBytes);
  SetFloats("rows", std::vector<float>(kHeads * 8 * kSize, 3), {1, kHeads, 8, kSize});
  SetInts("start", {0}, {1});
  ASSERT_EQ(Bind("cache", 0, cache.floats(), cache.floats() + 16), HONE_OK);
  EXPECT_EQ(hone_run(model_.get()), HONE_INVALID_ARGUMENT) << "shifted by a row's part";
  EXPECT_THAT(hone_error(), HasSubstr("output"));
  ASSERT_EQ(Bind("cache", 0, cache.floats(), cache.floats()), HONE_OK);
  Extents shape = {1, kHeads, kSize};
  const DLTensor sums = View(cache.floats(), shape);
  ASSERT_EQ(hone_bind_output(model_.get(), 1, &sums), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model_.get()), HONE_INVALID_ARGUMENT) << "an output that updates nothing";
}

// The model's own buffer of an input serves as well; the output is bound to it.
TEST_F(InPlace, WorksInTheModelsOwnBuffer) {
  Load(BuildUpdate, kOpenRows);
  SetFloats("cache", std::vector<float>(kCacheBytes / sizeof(float), 1), cache_shape_);
  DLTensor own;
  ASSERT_EQ(hone_get_input(model_.get(), IndexOf("cache"), &own), HONE_OK) << hone_error();
  ASSERT_EQ(hone_bind_output(model_.get(), 0, &own), HONE_OK) << hone_error();
  for (const int64_t start : {3, 4}) {
    SetFloats("rows", std::vector<float>(kHeads * kSize, static_cast<float>(start)), {1, kHeads, 1, kSize});
    SetInts("start", {start}, {1});
    ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
  }
  const auto* values = static_cast<const float*>(own.data);
  EXPECT_EQ(values[2 * kSize], 1);
  EXPECT_EQ(values[3 * kSize], 6);
  EXPECT_EQ(values[4 * kSize], 8);
}

TEST_F(InPlace, IsNotOfferedIfTheOldValueIsUsedLater) {
  Load(
      [](ModelBuilder& b) {
        BuildUpdate(b);
        b.Output(b.Node("ReduceMax", {"cache", b.Int64s({2})}, {{"keepdims", int64_t{0}}}));
      },
      kOpenRows);
  EXPECT_EQ(hone_updated_input(model_.get(), 0), -1);
  Pages cache(kCacheBytes);
  SetFloats("rows", std::vector<float>(kHeads * 8 * kSize, 3), {1, kHeads, 8, kSize});
  SetInts("start", {0}, {1});
  ASSERT_EQ(Bind("cache", 0, cache.floats(), cache.floats()), HONE_OK);
  EXPECT_EQ(hone_run(model_.get()), HONE_INVALID_ARGUMENT);
}

TEST_F(InPlace, IsNotOfferedIfPositionsWrapAround) {
  Load([](ModelBuilder& b) {
    const std::string cache = b.Input("cache", {1, kHeads, kCapacity, kSize});
    const std::string rows = b.Input("rows", {1, kHeads, 1, kSize});
    const std::string start = b.Input("start", {1}, onnx::TensorProto::INT64);
    b.Output(b.Node("TensorScatter", {cache, rows, start}, {{"axis", int64_t{2}}, {"mode", std::string("circular")}}));
  });
  EXPECT_EQ(hone_updated_input(model_.get(), 0), -1);
}

// One step of a decoder in com.microsoft's form: attention reads the caches that the step has updated.
TEST_F(InPlace, GroupQueryAttentionUpdatesBothCaches) {
  Load([](ModelBuilder& b) {
    const std::string q = b.Input("q", {1, 1, 4 * kSize}), k = b.Input("k", {1, 1, kHeads * kSize});
    const std::string v = b.Input("v", {1, 1, kHeads * kSize});
    const std::string past_k = b.Input("past_k", {1, kHeads, kCapacity, kSize});
    const std::string past_v = b.Input("past_v", {1, kHeads, kCapacity, kSize});
    const std::string last = b.Node("Cast", {b.Input("last", {1}, onnx::TensorProto::INT64)}, {{"to", int64_t{6}}});
    const std::string total = b.Node("Cast", {b.Input("total", {1}, onnx::TensorProto::INT64)}, {{"to", int64_t{6}}});
    const std::string y = b.Node("GroupQueryAttention", {q, k, v, past_k, past_v, last, total},
                                 {{"num_heads", int64_t{4}}, {"kv_num_heads", kHeads}});
    b.last_node().set_domain("com.microsoft");
    b.last_node().add_output("present_k");
    b.last_node().add_output("present_v");
    for (const std::string& output : {y, std::string("present_k"), std::string("present_v")}) b.Output(output);
  });
  EXPECT_EQ(hone_updated_input(model_.get(), 1), static_cast<int64_t>(IndexOf("past_k")));
  EXPECT_EQ(hone_updated_input(model_.get(), 2), static_cast<int64_t>(IndexOf("past_v")));
  Pages keys(kCacheBytes), values(kCacheBytes), keys_apart(kCacheBytes), values_apart(kCacheBytes);
  Fill(keys.floats(), kCacheBytes / sizeof(float), random_);
  Fill(values.floats(), kCacheBytes / sizeof(float), random_);
  for (const int64_t position : {9, 10, 11}) {
    for (const char* name : {"q", "k", "v"}) {
      std::vector<float> numbers(static_cast<size_t>((*name == 'q' ? 4 : kHeads) * kSize));
      Fill(numbers.data(), numbers.size(), random_);
      SetFloats(name, numbers, {1, 1, static_cast<int64_t>(numbers.size())});
    }
    SetInts("last", {position}, {1});
    SetInts("total", {position + 1}, {1});
    ASSERT_EQ(Bind("past_k", 1, keys.floats(), keys_apart.floats()), HONE_OK) << hone_error();
    ASSERT_EQ(Bind("past_v", 2, values.floats(), values_apart.floats()), HONE_OK) << hone_error();
    ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    const std::vector<float> y = Output(0);
    ASSERT_EQ(Bind("past_k", 1, keys.floats(), keys.floats()), HONE_OK) << hone_error();
    ASSERT_EQ(Bind("past_v", 2, values.floats(), values.floats()), HONE_OK) << hone_error();
    ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    EXPECT_EQ(Output(0), y);
    EXPECT_EQ(keys.Values(), keys_apart.Values());
    EXPECT_EQ(values.Values(), values_apart.Values());
  }
}

}  // namespace
}  // namespace hone::conformance
