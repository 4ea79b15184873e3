// SPDX-License-Identifier: Apache-2.0
// Packages with several programs for one target, which take different shapes: which one runs, and that inputs, outputs
// and threads stay the same when the program changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/plan.h"
#include "compiler/target/host.h"
#include "deploy/package/compile_model.h"
#include "deploy/runtime/hone.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"
#include "tests/conformance/onnx/compare_tensors.h"
#include "tests/models/model_builder.h"

namespace {
std::atomic<int64_t> allocations{0};

void* Allocate(std::size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}

}  // namespace

// All operators are replaced, so that sanitizers see matching allocations and frees. They are not inlined, because the
// compiler would warn about memory of `new` that is passed to `free`.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* const memory = Allocate(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace hone::conformance {
namespace {

using graph::DimRange;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kColumns = 12, kLargest = 64;
constexpr char kSecond[] = "a name that no small string holds";

// y = the product of the rows of x with a matrix, and the sum of y and z, the second input; x and z have n rows.
std::string ModelBytes() {
  models::ModelBuilder b("rows", 17);
  const std::string x = b.Input("x", {-1, kColumns}), z = b.Input(kSecond, {-1, kColumns});
  const std::string y = b.Node("Relu", {b.Node("MatMul", {x, b.Weight({kColumns, kColumns}, kColumns)})});
  b.Output(y);
  b.Output(b.Node("Add", {y, z}));
  for (onnx::ValueInfoProto& input : *b.mutable_model().mutable_graph()->mutable_input()) {
    input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("n");
  }
  return b.mutable_model().SerializeAsString();
}

class SeveralShapes : public ::testing::Test {
 protected:
  // The ranges of n in the order of the package. The runtime prefers program 2, then 1, then 0.
  static constexpr std::array<std::array<int64_t, 2>, 3> kRanges = {{{1, kLargest}, {2, 8}, {16, 16}}};

  void SetUp() override {
    std::ofstream(Path("model.onnx"), std::ios::binary) << ModelBytes();
    for (const auto& [min, max] : kRanges) imports_.push_back(ImportOf(DimRange(min, max)));
    Compile(imports_, "model.hone");
    Load("model.hone");
  }

  static graph::ImportOptions ImportOf(DimRange n) {
    graph::ImportOptions import;
    import.shapes = {{"x", {n, kColumns}}, {kSecond, {n, kColumns}}};
    return import;
  }
  void Compile(const std::vector<graph::ImportOptions>& imports, const std::string& file) {
    package::KernelOptions options;
    options.target = target::HostCpu();
    options.threads = 2;
    const auto summary = package::CompileModel(Path("model.onnx"), imports, {&options, 1}, Path(file));
    ASSERT_TRUE(summary.ok()) << summary.status();
  }
  void Load(const std::string& file) {
    const HoneLoadOptions load = {sizeof(HoneLoadOptions), 2, 0};
    HoneModel* loaded = nullptr;
    ASSERT_EQ(hone_load(Path(file).c_str(), &load, &loaded), HONE_OK) << hone_error();
    model_.reset(loaded);
  }
  std::string Path(std::string_view file) const { return folder_ / file; }

  // Tensors of n rows on memory of kLargest rows, which can be bound.
  struct Rows {
    alignas(64) float values[kLargest * kColumns] = {};
    int64_t shape[2] = {kLargest, kColumns};
    DLTensor View(int64_t n) {
      shape[0] = n;
      return {values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
    }
  };
  void Draw(Rows& rows) {
    for (float& value : rows.values) value = static_cast<float>(random_.Uniform() * 2 - 1);
  }

  // Compares the outputs of the last run, of n rows, with the interpreter's for the model with fixed shapes.
  void ExpectOutputs(int64_t n) {
    const auto plan = graph::BuildPlan(Path("model.onnx"), ImportOf(n), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::vector<ir::Bytes> inputs;
    for (const Rows* rows : {&x_, &z_}) {
      const auto* first = reinterpret_cast<const std::byte*>(rows->values);
      inputs.emplace_back(first, first + n * kColumns * static_cast<int64_t>(sizeof(float)));
    }
    const auto expected = graph::InterpretPlan(*plan, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (size_t i = 0; i < 2; ++i) {
      DLTensor view;
      ASSERT_EQ(hone_get_output(model_.get(), i, &view), HONE_OK);
      ASSERT_EQ(view.shape[0], n);
      const auto* first = static_cast<const std::byte*>(view.data);
      const graph::TensorType type = plan->tensors[plan->outputs[i]].type;
      const graph::Constant made{type, std::make_shared<ir::Bytes>(first, first + (*expected)[i].size())};
      const graph::Constant wanted{type, std::make_shared<ir::Bytes>((*expected)[i])};
      EXPECT_EQ(CompareTensors(made, wanted), absl::OkStatus()) << "output " << i;
    }
  }

  // Sets both inputs to n rows.
  void SetInputs(int64_t n) {
    DLTensor x = x_.View(n), z = z_.View(n);
    ASSERT_EQ(hone_set_input(model_.get(), 0, &x), HONE_OK) << hone_error();
    ASSERT_EQ(hone_set_input(model_.get(), 1, &z), HONE_OK) << hone_error();
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::vector<graph::ImportOptions> imports_;
  Random random_{23};
  Rows x_, z_, y_;
  std::unique_ptr<HoneModel, decltype(&hone_free)> model_ = {nullptr, &hone_free};
};

struct Expected {
  int64_t rows;
  size_t program;
};
constexpr Expected kRuns[] = {{64, 0}, {16, 2}, {3, 1}, {8, 1}, {9, 0}, {1, 0}, {2, 1}, {16, 2}, {15, 0}, {64, 0}};

TEST_F(SeveralShapes, TheFirstProgramThatTakesTheShapesRuns) {
  for (const auto& [n, program] : kRuns) {
    SCOPED_TRACE(n);
    Draw(x_), Draw(z_);
    SetInputs(n);
    EXPECT_EQ(hone_program(model_.get()), program);
    ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    EXPECT_EQ(hone_program(model_.get()), program);
    ExpectOutputs(n);
  }
}

TEST_F(SeveralShapes, ThePortsKeepTheirMemory) {
  DLTensor x, y;
  ASSERT_EQ(hone_get_input(model_.get(), 0, &x), HONE_OK);
  ASSERT_EQ(hone_get_output(model_.get(), 0, &y), HONE_OK);
  const void* const x_memory = x.data;
  const void* const y_memory = y.data;
  for (const auto& [n, program] : kRuns) {
    SetInputs(n);
    ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    ASSERT_EQ(hone_get_input(model_.get(), 0, &x), HONE_OK);
    ASSERT_EQ(hone_get_output(model_.get(), 0, &y), HONE_OK);
    EXPECT_EQ(x.data, x_memory);
    EXPECT_EQ(y.data, y_memory);
  }
}

TEST_F(SeveralShapes, BoundMemoryStaysBound) {
  DLTensor largest = y_.View(kLargest);
  ASSERT_EQ(hone_bind_output(model_.get(), 0, &largest), HONE_OK) << hone_error();
  for (const auto& [n, program] : kRuns) {
    SCOPED_TRACE(n);
    Draw(x_), Draw(z_);
    DLTensor x = x_.View(n), z = z_.View(n);
    ASSERT_EQ(hone_bind_input(model_.get(), 0, &x), HONE_OK) << hone_error();
    ASSERT_EQ(hone_set_input(model_.get(), 1, &z), HONE_OK) << hone_error();
    ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    DLTensor y;
    ASSERT_EQ(hone_get_output(model_.get(), 0, &y), HONE_OK);
    EXPECT_EQ(y.data, y_.values);
    ExpectOutputs(n);
  }
}

TEST_F(SeveralShapes, AnOutputKeepsItsShapeUntilTheNextRun) {
  SetInputs(64);
  ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
  const int64_t shape[] = {16, kColumns};
  for (size_t i = 0; i < 2; ++i) ASSERT_EQ(hone_resize(model_.get(), i, shape, 2), HONE_OK) << hone_error();
  EXPECT_EQ(hone_program(model_.get()), 2U);
  HonePort y;
  ASSERT_EQ(hone_output(model_.get(), 0, &y), HONE_OK);
  EXPECT_EQ(y.shape[0], 64);
}

TEST_F(SeveralShapes, NothingIsAllocatedAfterTheFirstUse) {
  for (int round = 0; round < 2; ++round) {
    for (const auto& [n, program] : kRuns) {
      const int64_t before = allocations.load();
      SetInputs(n);
      ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
      if (round == 0) continue;
      EXPECT_EQ(allocations.load(), before) << n;
    }
  }
}

TEST_F(SeveralShapes, AllProgramsUseTheSameThreads) {
  for (const int32_t threads : {2, 1, 2}) {
    ASSERT_EQ(hone_set_threads(model_.get(), threads), HONE_OK);
    for (const auto& [n, program] : kRuns) {
      SetInputs(n);
      ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
      EXPECT_EQ(hone_threads(model_.get()), threads);
    }
  }
}

TEST_F(SeveralShapes, TheRangeHoldsThoseOfAllPrograms) {
  int64_t min[2], max[2];
  ASSERT_EQ(hone_input_range(model_.get(), 0, min, max, 2), HONE_OK);
  EXPECT_EQ(min[0], 1);
  EXPECT_EQ(max[0], kLargest);
  EXPECT_EQ(hone_check_input_range(model_.get(), 0, min, max, 2), HONE_OK) << hone_error();
}

TEST_F(SeveralShapes, AShapeThatNoProgramTakesIsRefusedWithAllThatAreTaken) {
  Compile({imports_[1], imports_[2]}, "two.hone");
  Load("two.hone");
  const int64_t between[] = {12, kColumns}, small[] = {8, kColumns}, exact[] = {16, kColumns};
  EXPECT_EQ(hone_resize(model_.get(), 0, between, 2), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("[12, 12], the model wants [16, 12] or [2..8, 12]"));
  SetInputs(16);
  ASSERT_EQ(hone_resize(model_.get(), 0, small, 2), HONE_OK) << hone_error();
  ASSERT_EQ(hone_resize(model_.get(), 1, exact, 2), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model_.get()), HONE_INVALID_ARGUMENT);
  const std::string second = std::string("'") + kSecond + "' ";
  EXPECT_THAT(hone_error(), AllOf(HasSubstr("'x' [8, 12], " + second + "[16, 12]"),
                                  HasSubstr("it takes 'x' [16, 12], " + second + "[16, 12]; or 'x' [2..8, 12], " +
                                            second + "[2..8, 12]")));
  SetInputs(5);
  ASSERT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
  ExpectOutputs(5);
}

TEST_F(SeveralShapes, TheProfileIsThatOfTheProgramForTheShapes) {
  for (const auto& [n, program] : kRuns) {
    SetInputs(n);
    std::vector<int64_t> times(hone_call_count(model_.get()), -1);
    ASSERT_EQ(hone_run_profiled(model_.get(), times.data(), times.size()), HONE_OK) << hone_error();
    for (const int64_t time : times) EXPECT_GE(time, 0);
    ExpectOutputs(n);
  }
}

TEST_F(SeveralShapes, ProgramsShareConstants) {
  Compile({imports_[0]}, "one.hone");
  Compile({imports_[0], ImportOf(DimRange(1, 32))}, "both.hone");
  std::vector<size_t> bytes;
  for (const char* file : {"one.hone", "both.hone"}) {
    runtime::Mapping mapping;
    runtime::PackageView view;
    ASSERT_TRUE(runtime::Mapping::File(Path(file), &mapping).ok());
    ASSERT_TRUE(runtime::ViewPackage(mapping.bytes(), runtime::ConstantsCheck::kFull, &view).ok());
    bytes.push_back(view.constants.size());
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace
}  // namespace hone::conformance
