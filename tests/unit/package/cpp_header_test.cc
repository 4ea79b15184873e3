// SPDX-License-Identifier: Apache-2.0
// The C++ header of a model: names that C++ does not take, and that it compiles whatever the model is called.
#include "deploy/package/cpp_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/temporary_folder.h"

namespace hone::package {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string CppHeader(const std::string& model_name, const PackageProgram& program) {
  return package::CppHeader(model_name, {&program, 1});
}

PackageProgram ProgramOf(std::vector<PackageTensor> inputs, std::vector<PackageTensor> outputs) {
  PackageProgram program;
  for (PackageTensor& input : inputs) {
    program.inputs.push_back(static_cast<TensorId>(program.tensors.size()));
    program.tensors.push_back(std::move(input));
  }
  for (PackageTensor& output : outputs) {
    program.outputs.push_back(static_cast<TensorId>(program.tensors.size()));
    program.tensors.push_back(std::move(output));
  }
  return program;
}

// As GNU C++, which predefines more names than the standard does.
bool Compiles(const std::string& headers) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  std::ofstream(folder / "models.h") << headers;
  std::ofstream(folder / "main.cc") << "#include \"models.h\"\nint main() {}\n";
  const std::string command = "c++ -std=gnu++17 -Wall -Wextra -Werror -fsyntax-only -I" HONE_SOURCE_DIR
                              "/deploy/runtime " +
                              (folder / "main.cc").string();
  return std::system(command.c_str()) == 0;
}

TEST(CppHeaderTest, InputsAndOutputsAreTypedMembers) {
  const std::string header =
      CppHeader("net", ProgramOf({{"image", DType::kFloat32, {1, 3, 8, 8}}, {"mask", DType::kBool, {1}}},
                                 {{"class", DType::kInt64, {}}, {"half", DType::kFloat16, {0, 2}}}));
  EXPECT_THAT(header, HasSubstr("namespace net {"));
  EXPECT_THAT(header, HasSubstr("float* input_image()"));
  EXPECT_THAT(header, HasSubstr("bool* input_mask()"));
  EXPECT_THAT(header, HasSubstr("const int64_t* output_class() const"));
  EXPECT_THAT(header, HasSubstr("const uint16_t* output_half() const"));
  EXPECT_THAT(header, HasSubstr("std::array<int64_t, 4> kInputImageShape = {1, 3, 8, 8};"));
  EXPECT_THAT(header, HasSubstr("kInputImageSize = 192;"));
  EXPECT_THAT(header, HasSubstr("kOutputClassSize = 1;"));
  EXPECT_THAT(header, HasSubstr("kOutputHalfSize = 0;"));
  EXPECT_TRUE(Compiles(header)) << header;
}

TEST(CppHeaderTest, AnyNamesCompile) {
  const std::string header =
      CppHeader("3d-net.v2", ProgramOf({{"a.b", DType::kFloat32, {1}},
                                        {"a/b", DType::kFloat32, {1}},
                                        {"a_B", DType::kFloat32, {1}},
                                        {"", DType::kFloat32, {1}},
                                        {"evil\"); */ \\\n#error", DType::kFloat32, {1}}},
                                       {{"a.b", DType::kFloat32, {1}}, {"int", DType::kFloat32, {1}}}));
  EXPECT_THAT(header, HasSubstr("namespace _3d_net_v2 {"));
  EXPECT_TRUE(Compiles(header)) << header;
}

TEST(CppHeaderTest, ReservedNamesGetAnUnderscore) {
  const PackageProgram program = ProgramOf({{"int", DType::kFloat32, {1}}}, {});
  std::string headers;
  for (const std::string name : {"new", "int", "class", "and", "co_yield", "main", "std", "linux", "unix", "NULL",
                                 "index", "HoneModel", "hone_run", "HONE_OK", "DLTensor", "kDLCPU"}) {
    const std::string header = CppHeader(name, program);
    EXPECT_THAT(header, HasSubstr("namespace " + name + "_ {"));
    EXPECT_THAT(header, HasSubstr("float* input_int()")) << "members begin with a word of their own";
    headers += header;
  }
  for (const std::string name : {"hone", "news", "Model"}) {
    const std::string header = CppHeader(name, program);
    EXPECT_THAT(header, HasSubstr("namespace " + name + " {"));
    headers += header;
  }
  EXPECT_TRUE(Compiles(headers));
}

TEST(CppHeaderTest, APackageIsComparedByNamesTypesAndShapes) {
  const std::string header =
      CppHeader("net", ProgramOf({{"a", DType::kFloat32, {8}}, {"{INPUTS} \"b\" \xc3\xb6", DType::kFloat32, {8}}},
                                 {{"y", DType::kInt64, {8}}}));
  EXPECT_THAT(header, HasSubstr("std::array<HonePort, 2> inputs"));
  EXPECT_THAT(header, HasSubstr("HonePort{\"a\", {2, 32, 1}, 1, kInputAShape.data(), kInputASize * 4}"));
  EXPECT_THAT(header, HasSubstr(R"(HonePort{"{INPUTS} \042b\042 \303\266", {2, 32, 1}, 1, )"));
  EXPECT_THAT(header, HasSubstr("std::array<HonePort, 1> outputs"));
  EXPECT_THAT(header, HasSubstr("HonePort{\"y\", {0, 64, 1}, 1, "));
  EXPECT_TRUE(Compiles(header)) << header;
}

TEST(CppHeaderTest, OpenDimensionsHaveRangesAndSetters) {
  const ir::Size n = ir::Size::Open({"n", 2, 9}), w = ir::Size::Open({"w", 1, 4}) * 32;
  const std::string header =
      CppHeader("net", ProgramOf({{"x", DType::kFloat32, {9, 3, 128}, {n, 3, w}, TensorKind::kInput},
                                  {"fixed", DType::kFloat32, {5}, {}, TensorKind::kInput}},
                                 {{"y", DType::kFloat32, {18}, {n * 2}, TensorKind::kOutput}}));
  EXPECT_THAT(header, HasSubstr("// Input \"x\": f32[2..9, 3, 32..128]; each run may have another shape"));
  EXPECT_THAT(header, HasSubstr("std::array<int64_t, 3> kInputXMin = {2, 3, 32};"));
  EXPECT_THAT(header, HasSubstr("std::array<int64_t, 3> kInputXShape = {9, 3, 128};"));
  EXPECT_THAT(header, HasSubstr("kInputXSize = 3456;"));
  EXPECT_THAT(header, HasSubstr("HoneStatus resize_input_x(const std::array<int64_t, 3>& shape)"));
  EXPECT_THAT(header, HasSubstr("std::array<int64_t, 1> shape_of_output_y() const"));
  EXPECT_THAT(header, HasSubstr("hone_check_input_range(model, 0, kInputXMin.data(), kInputXShape.data(), 3)"));
  EXPECT_THAT(header, Not(HasSubstr("resize_input_fixed")));
  EXPECT_THAT(header, Not(HasSubstr("kOutputYMin")));
  EXPECT_TRUE(Compiles(header)) << header;
}

TEST(CppHeaderTest, ProgramsOfOneTargetHaveTheRangeOfAll) {
  const ir::Size n = ir::Size::Open({"n", 2, 9});
  const PackageProgram programs[] = {ProgramOf({{"x", DType::kFloat32, {64}, {}, TensorKind::kInput}}, {}),
                                     ProgramOf({{"x", DType::kFloat32, {9}, {n}, TensorKind::kInput}}, {})};
  const std::string header = package::CppHeader("net", programs);
  EXPECT_THAT(header, HasSubstr("kInputXMin = {2};"));
  EXPECT_THAT(header, HasSubstr("kInputXShape = {64};"));
  EXPECT_THAT(header, HasSubstr("kInputXSize = 64;"));
}

TEST(CppHeaderTest, AModelWithoutInputsCompiles) {
  EXPECT_TRUE(Compiles(CppHeader("constants", ProgramOf({}, {{"y", DType::kFloat32, {2}}}))));
}

}  // namespace
}  // namespace hone::package
