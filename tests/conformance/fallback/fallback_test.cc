// SPDX-License-Identifier: Apache-2.0
// Models with nodes that Hone cannot compile, which ONNX Runtime computes inside the package: with a fake of its
// library (fake_onnx_runtime.c: every output is twice the first input), and with the library itself where it is found.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "compiler/target/host.h"
#include "deploy/package/compile_model.h"
#include "deploy/runtime/foreign_part.h"
#include "deploy/runtime/hone.h"
#include "tests/models/model_builder.h"

namespace hone::conformance {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr char kVariable[] = "HONE_ONNX_RUNTIME";

// Declares the type of a value in the file. A dimension of -1 is the symbol "batch".
void Declare(models::ModelBuilder& b, const std::string& name, const std::vector<int64_t>& shape) {
  onnx::ValueInfoProto& info = *b.mutable_model().mutable_graph()->add_value_info();
  info.set_name(name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape) {
    onnx::TensorShapeProto::Dimension& dimension = *type.mutable_shape()->add_dim();
    if (extent < 0) {
      dimension.set_dim_param("batch");
    } else {
      dimension.set_dim_value(extent);
    }
  }
}

std::string Unknown(models::ModelBuilder& b, const std::vector<std::string>& inputs, const std::string& op = "Twice") {
  std::string output = b.Node(op, inputs);
  b.last_node().set_domain("acme");
  return output;
}

class Fallback : public ::testing::Test {
 protected:
  void SetUp() override { setenv(kVariable, HONE_FAKE_ONNX_RUNTIME, 1); }
  void TearDown() override { unsetenv(kVariable); }

  absl::Status Compile(const models::ModelBuilder& b, const graph::ImportOptions& import = {}) {
    return Compile(b, std::span(&import, 1));
  }
  absl::Status Compile(const models::ModelBuilder& b, std::span<const graph::ImportOptions> imports) {
    std::ofstream(Path("model.onnx"), std::ios::binary) << b.model().SerializeAsString();
    package::KernelOptions options;
    options.target = target::HostCpu();
    options.threads = 2;
    return package::CompileModel(Path("model.onnx"), imports, {&options, 1}, Path("model.hone")).status();
  }
  void CompileWithFallback(const models::ModelBuilder& b, graph::ImportOptions import = {}) {
    import.fallback = true;
    ASSERT_EQ(Compile(b, import), absl::OkStatus());
  }
  HoneStatus Load(uint32_t flags = 0) {
    const HoneLoadOptions options = {sizeof(HoneLoadOptions), 2, flags};
    HoneModel* loaded = nullptr;
    const HoneStatus status = hone_load(Path("model.hone").c_str(), &options, &loaded);
    model_.reset(loaded);
    return status;
  }
  void SetInput(std::vector<float> values, std::vector<int64_t> shape) {
    const DLTensor tensor = {
        values.data(), {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
    ASSERT_EQ(hone_set_input(model_.get(), 0, &tensor), HONE_OK) << hone_error();
  }
  std::vector<float> Output() {
    HonePort port;
    DLTensor view;
    EXPECT_EQ(hone_output(model_.get(), 0, &port), HONE_OK);
    EXPECT_EQ(hone_get_output(model_.get(), 0, &view), HONE_OK) << hone_error();
    const auto* first = static_cast<const float*>(view.data);
    return {first, first + port.bytes / sizeof(float)};
  }
  std::vector<float> Run(const std::vector<float>& values, const std::vector<int64_t>& shape) {
    SetInput(values, shape);
    EXPECT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    return Output();
  }
  std::string Path(std::string_view file) const { return folder_ / file; }

  struct Freer {
    void operator()(HoneModel* model) const { hone_free(model); }
  };
  TemporaryFolder folder_ = *TemporaryFolder::Create();
  std::unique_ptr<HoneModel, Freer> model_;
};

// y = 2 * relu(x) - 1, where a part computes the product.
models::ModelBuilder OnePart() {
  models::ModelBuilder b("one_part", 17);
  const std::string doubled = Unknown(b, {b.Node("Relu", {b.Input("x", {2, 3})})});
  Declare(b, doubled, {2, 3});
  b.Output(b.Node("Sub", {doubled, b.Scalar(1)}));
  return b;
}

TEST_F(Fallback, WithoutItTheModelIsRefused) {
  const absl::Status status = Compile(OnePart());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(acme.Twice): the operator is not supported"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--fallback onnxruntime"));
}

TEST_F(Fallback, APartRunsBetweenKernels) {
  CompileWithFallback(OnePart());
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  EXPECT_THAT(Run({1, -2, 3, -4, 5, 0.5}, {2, 3}), ElementsAre(1, -1, 5, -1, 9, 0));
  EXPECT_THAT(Run({0, 0, 0, 0, 0, 4}, {2, 3}), ElementsAre(-1, -1, -1, -1, -1, 7));
  ASSERT_EQ(hone_set_threads(model_.get(), 1), HONE_OK);
  EXPECT_THAT(Run({1, 1, 1, 1, 1, 1}, {2, 3}), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST_F(Fallback, ACallOfItsOwnHasTheTime) {
  CompileWithFallback(OnePart());
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  SetInput(std::vector<float>(6), {2, 3});
  std::vector<int64_t> nanoseconds(hone_call_count(model_.get()), -1);
  ASSERT_EQ(hone_run_profiled(model_.get(), nanoseconds.data(), nanoseconds.size()), HONE_OK);
  std::vector<std::string> targets;
  for (size_t i = 0; i < nanoseconds.size(); ++i) {
    targets.emplace_back(hone_call_target(model_.get(), i));
    if (targets.back() != "onnxruntime") continue;
    EXPECT_GT(nanoseconds[i], 0);
    EXPECT_THAT(hone_call_symbol(model_.get(), i), HasSubstr("onnxruntime"));
  }
  EXPECT_THAT(targets, Contains("onnxruntime").Times(1));
}

TEST_F(Fallback, NothingIsLoadedUnlessItIsAllowed) {
  CompileWithFallback(OnePart());
  unsetenv(kVariable);
  EXPECT_EQ(Load(), HONE_INCOMPATIBLE);
  EXPECT_THAT(hone_error(), HasSubstr("nothing allows this process to load its library"));
  EXPECT_THAT(hone_error(), HasSubstr("HONE_LOAD_ALLOW_ONNX_RUNTIME"));
  setenv(kVariable, "", 1);
  EXPECT_EQ(Load(), HONE_INCOMPATIBLE);
}

TEST_F(Fallback, AMissingLibraryIsToldWhenThePackageIsLoaded) {
  CompileWithFallback(OnePart());
  setenv(kVariable, "/nowhere/libonnxruntime.so.1", 1);
  EXPECT_EQ(Load(), HONE_INCOMPATIBLE);
  EXPECT_THAT(hone_error(), HasSubstr("cannot load ONNX Runtime: /nowhere/libonnxruntime.so.1"));
  setenv(kVariable, "libm.so.6", 1);
  EXPECT_EQ(Load(HONE_LOAD_ALLOW_ONNX_RUNTIME), HONE_INCOMPATIBLE);
  EXPECT_THAT(hone_error(), HasSubstr("libm.so.6 is not ONNX Runtime"));
}

TEST_F(Fallback, OpenSizesReachThePart) {
  models::ModelBuilder b("open", 17);
  const std::string doubled = Unknown(b, {b.Node("Relu", {b.Input("x", {-1, 2})})}, "Reversed");
  Declare(b, doubled, {-1, 2});
  b.Output(b.Node("Sub", {doubled, b.Scalar(1)}));
  graph::ImportOptions import;
  import.ranges = {{"batch", {1, 4}}};
  CompileWithFallback(b, import);
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  EXPECT_THAT(Run({1, 2}, {1, 2}), ElementsAre(3, 1));
  EXPECT_THAT(Run({1, 2, 3, 4, 5, 6}, {3, 2}), ElementsAre(11, 9, 7, 5, 3, 1));
  EXPECT_THAT(Run({-1, 2, 3, 4}, {2, 2}), ElementsAre(7, 5, 3, -1));
}

size_t LoadedSessions() {
  void* const fake = dlopen(HONE_FAKE_ONNX_RUNTIME, RTLD_NOW | RTLD_LOCAL);
  const auto* const count = fake == nullptr ? nullptr : dlsym(fake, "FakeSessionCount");
  return count == nullptr ? 0 : *static_cast<const size_t*>(count);
}

TEST_F(Fallback, APartOfEveryProgramIsLoadedOnce) {
  models::ModelBuilder b("several", 17);
  const std::string doubled = Unknown(b, {b.Node("Relu", {b.Input("x", {-1, 2})})});
  Declare(b, doubled, {-1, 2});
  b.Output(b.Node("Sub", {doubled, b.Scalar(1)}));
  std::vector<graph::ImportOptions> imports(2);
  imports[0].ranges = {{"batch", {1, 4}}};
  imports[1].ranges = {{"batch", {2, 2}}};
  for (graph::ImportOptions& import : imports) import.fallback = true;
  ASSERT_EQ(Compile(b, imports), absl::OkStatus());
  const size_t before = LoadedSessions();
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  EXPECT_THAT(Run({1, 2}, {1, 2}), ElementsAre(1, 3));
  EXPECT_EQ(LoadedSessions(), before + 1);
  EXPECT_THAT(Run({1, 2, 3, 4}, {2, 2}), ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(LoadedSessions(), before + 2);
}

// A view of a tensor has its own shape in the part's model.
TEST_F(Fallback, AReshapedInputHasItsOwnShape) {
  models::ModelBuilder b("reshaped", 17);
  const std::string flat = b.Node("Reshape", {b.Node("Relu", {b.Input("x", {2, 3})}), b.Int64s({6})});
  const std::string doubled = Unknown(b, {flat});
  Declare(b, doubled, {6});
  b.Output(b.Node("Reshape", {doubled, b.Int64s({3, 2})}));
  CompileWithFallback(b);
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  EXPECT_THAT(Run({1, -2, 3, -4, 5, 0.5}, {2, 3}), ElementsAre(2, 0, 6, 0, 10, 1));
}

// The second node follows a value whose shape is not stated, and the last one makes an output of the model.
TEST_F(Fallback, AWholeModelMayBeOnePart) {
  models::ModelBuilder b("whole", 17);
  const std::string doubled = Unknown(b, {b.Input("x", {4})});
  b.Output(b.Node("Relu", {doubled}));
  onnx::TypeProto::Tensor& type =
      *b.mutable_model().mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->add_dim()->set_dim_value(4);
  CompileWithFallback(b);
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  EXPECT_EQ(hone_call_count(model_.get()), 1u);
  EXPECT_THAT(Run({1, 2, 3, 4}, {4}), ElementsAre(2, 4, 6, 8));
}

TEST_F(Fallback, AnOutputWithoutAShapeIsToldByName) {
  models::ModelBuilder b("shapeless", 17);
  const std::string doubled = Unknown(b, {b.Input("x", {4})});
  b.Output(doubled);
  graph::ImportOptions import;
  import.fallback = true;
  const absl::Status status = Compile(b, import);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'" + doubled + "', whose element type and shape"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("infer_shapes"));
}

TEST_F(Fallback, ErrorsOfTheLibraryNameIt) {
  models::ModelBuilder b("unloadable", 17);
  const std::string y = Unknown(b, {b.Input("x", {2})}, "Unloadable");
  Declare(b, y, {2});
  b.Output(b.Node("Relu", {y}));
  CompileWithFallback(b);
  EXPECT_EQ(Load(), HONE_INCOMPATIBLE);
  EXPECT_THAT(hone_error(), HasSubstr("ONNX Runtime 1.20 (fake)"));
  EXPECT_THAT(hone_error(), HasSubstr("the fake does not load this model"));

  CompileWithFallback(OnePart());
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  models::ModelBuilder direct("direct", 17);
  const std::string z = Unknown(direct, {direct.Input("x", {2})});
  Declare(direct, z, {2});
  direct.Output(direct.Node("Relu", {z}));
  CompileWithFallback(direct);
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  SetInput({std::numeric_limits<float>::quiet_NaN(), 0}, {2});
  EXPECT_EQ(hone_run(model_.get()), HONE_IO_ERROR);
  EXPECT_THAT(hone_error(), HasSubstr("the fake does not run on NaN"));
  EXPECT_THAT(Run({1, -1}, {2}), ElementsAre(2, 0)) << "the model runs again after an error";
}

TEST_F(Fallback, DevicesWithLanesAreRefused) {
  std::ofstream(Path("model.onnx"), std::ios::binary) << OnePart().model().SerializeAsString();
  package::KernelOptions options;
  options.target = *target::ParseTarget("cuda -arch=sm_90");
  graph::ImportOptions import;
  import.fallback = true;
  const absl::Status status =
      package::CompileModel(Path("model.onnx"), import, {&options, 1}, Path("model.hone")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("beside CPUs only"));
}

// hone-run finds the fake as the dynamic linker finds the library. It allows the library only with its option.
TEST_F(Fallback, TheLibraryIsFoundByTheLinker) {
  CompileWithFallback(OnePart());
  unsetenv(kVariable);
  std::filesystem::create_symlink(HONE_FAKE_ONNX_RUNTIME, Path("libonnxruntime.so.1"));
  const std::vector<float> x = {1, -2, 3, -4, 5, 0.5};
  std::ofstream(Path("x.raw"), std::ios::binary)
      .write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  const std::string run = "LD_LIBRARY_PATH=" + folder_.path().string() + " " HONE_RUN_PROGRAM " " + Path("model.hone") +
                          " --raw-in x=" + Path("x.raw") + " >" + Path("log") + " 2>&1";
  EXPECT_NE(std::system(run.c_str()), 0);
  EXPECT_EQ(std::system((run + " --fallback onnxruntime").c_str()), 0);
  EXPECT_NE(std::system((run + " --fallback other").c_str()), 0);
}

// The child of a fork has none of the library's threads.
TEST_F(Fallback, APartRunsInAForkedProcess) {
  CompileWithFallback(OnePart());
  ASSERT_EQ(Load(), HONE_OK) << hone_error();
  for (const bool runs : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      const bool good = !runs || Run({1, 1, 1, 1, 1, 1}, {2, 3}) == std::vector<float>(6, 1);
      model_.reset();
      _exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// A description of a kernel and the code of its unit, which do not belong together, are refused before a run.
TEST_F(Fallback, ADamagedPartIsABadPackage) {
  models::ModelBuilder b("part", 17);
  b.Output(Unknown(b, {b.Input("x", {2})}));
  const std::string model = b.model().SerializeAsString();
  const auto load = [](const std::function<void(KernelInterface&, std::string&)>& damage, std::string code) {
    KernelInterface kernel = {.name = "part"};
    kernel.buffers = {{.role = BufferRole::kInput, .dtype = "f32", .shape = {2}},
                      {.role = BufferRole::kOutput, .dtype = "f32", .shape = {2}}};
    kernel.main = {{.function = "model0"}};
    const uint64_t bytes = code.size();
    code.insert(0, reinterpret_cast<const char*>(&bytes), sizeof bytes);
    damage(kernel, code);
    runtime::ForeignPart part;
    return runtime::ForeignPart::Load(kernel, {reinterpret_cast<const uint8_t*>(code.data()), code.size()}, true, 1,
                                      &part)
        .code;
  };
  EXPECT_EQ(load([](KernelInterface&, std::string&) {}, model), HONE_OK);
  const std::vector<std::function<void(KernelInterface&, std::string&)>> damages = {
      [](KernelInterface& kernel, std::string&) { kernel.main[0].function = "model1"; },
      [](KernelInterface& kernel, std::string&) { kernel.main[0].function = "model"; },
      [](KernelInterface& kernel, std::string&) { kernel.main[0].function = "main"; },
      [](KernelInterface& kernel, std::string&) { kernel.main.clear(); },
      [](KernelInterface& kernel, std::string&) { kernel.buffers[0].role = BufferRole::kConstant; },
      [](KernelInterface& kernel, std::string&) { kernel.buffers[0].used = false; },
      [](KernelInterface& kernel, std::string&) { kernel.buffers.insert(kernel.buffers.begin(), kernel.buffers[0]); },
      [](KernelInterface& kernel, std::string&) {
        kernel.buffers.push_back({.role = BufferRole::kSizes, .dtype = "i64", .shape = {1}});
      },
      [](KernelInterface&, std::string& code) { code.resize(7); },
      [](KernelInterface&, std::string& code) { code.resize(20); },
  };
  for (size_t i = 0; i < damages.size(); ++i) EXPECT_EQ(load(damages[i], model), HONE_BAD_PACKAGE) << i;
}

TEST_F(Fallback, ATensorWithElementsNeedsMemory) {
  models::ModelBuilder b("part", 17);
  b.Output(Unknown(b, {b.Input("x", {2})}));
  const std::string model = b.model().SerializeAsString();
  drivers::onnx_runtime::Session session;
  ASSERT_EQ(
      drivers::onnx_runtime::Session::Open({reinterpret_cast<const uint8_t*>(model.data()), model.size()}, 1, &session)
          .text,
      "");
  float y[2] = {};
  const std::vector<int64_t> shape = {2};
  const drivers::onnx_runtime::Tensor input = {.element_type = 1, .shape = shape, .data = nullptr, .bytes = sizeof y};
  const drivers::onnx_runtime::Tensor output = {.element_type = 1, .shape = shape, .data = y, .bytes = sizeof y};
  EXPECT_THAT(session.Run({&input, 1}, {&output, 1}).text, HasSubstr("no memory"));
}

// --- With ONNX Runtime itself.

class RealFallback : public Fallback {
 protected:
  void SetUp() override {
    const char* const path = std::getenv("HONE_REAL_ONNX_RUNTIME");
    if (path != nullptr) setenv(kVariable, path, 1);
    if (path == nullptr && dlopen("libonnxruntime.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) {
      GTEST_SKIP() << "ONNX Runtime is not installed, and HONE_REAL_ONNX_RUNTIME does not name its library";
    }
  }
};

// The second half of each row, by a sequence of both halves, which is a type that Hone does not have.
models::ModelBuilder Halves(int64_t rows, const std::vector<int64_t>& declared) {
  models::ModelBuilder b("halves", 17);
  const std::string half = b.Int64s({2}), one = b.Int64s({1});
  for (const int i : {0, 1}) b.mutable_model().mutable_graph()->mutable_initializer(i)->clear_dims();
  const std::string sequence =
      b.Node("SplitToSequence", {b.Node("Relu", {b.Input("x", {rows, 4})}), half}, {{"axis", int64_t{1}}});
  const std::string part = b.Node("SequenceAt", {sequence, one});
  Declare(b, part, declared);
  b.Output(b.Node("Sub", {part, b.Scalar(1)}));
  onnx::OperatorSetIdProto& unknown = *b.mutable_model().add_opset_import();  // the library does not know the domain
  unknown.set_domain("acme");
  unknown.set_version(3);
  return b;
}

TEST_F(RealFallback, APartRunsBetweenKernels) {
  graph::ImportOptions import;
  import.ranges = {{"batch", {1, 4}}};
  CompileWithFallback(Halves(-1, {-1, 2}), import);
  ASSERT_EQ(Load(HONE_LOAD_ALLOW_ONNX_RUNTIME), HONE_OK) << hone_error();
  EXPECT_THAT(Run({1, 2, 3, -4}, {1, 4}), ElementsAre(2, -1));
  EXPECT_THAT(Run({1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9}, {3, 4}), ElementsAre(2, 3, 6, 7, 8, 8));
}

// The declared shape is wrong: the run fails instead of writing beyond the tensor.
TEST_F(RealFallback, AWrongDeclaredShapeIsAnErrorOfTheRun) {
  CompileWithFallback(Halves(3, {3, 1}));
  ASSERT_EQ(Load(HONE_LOAD_ALLOW_ONNX_RUNTIME), HONE_OK) << hone_error();
  SetInput(std::vector<float>(12), {3, 4});
  EXPECT_EQ(hone_run(model_.get()), HONE_IO_ERROR);
  EXPECT_THAT(hone_error(), HasSubstr("ONNX Runtime"));
}

}  // namespace
}  // namespace hone::conformance
