// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/tiny_package.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "deploy/package/memory_plan.h"
#include "deploy/runtime/cpu_features.h"

namespace hone::tests {

std::string ReadWholeFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  HONE_CHECK(stream.good());
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

void WriteWholeFile(const std::string& path, const std::string& bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << bytes;
  stream.close();
  HONE_CHECK(stream.good());
}

CommandResult RunCommand(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  HONE_CHECK(pipe != nullptr);
  CommandResult result = {-1, ""};
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) result.output.append(buffer, count);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::string CompileTinyKernels(const std::string& flags, const std::string& compiler) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string object = folder / "kernels.so";
  const CommandResult result = RunCommand(
      fmt::format("{} -shared -fPIC -O1 {} -I{} {}/tests/unit/runtime/tiny_kernels.c -o {}",
                  compiler.empty() ? HONE_TEST_CC : compiler, flags, HONE_SOURCE_DIR, HONE_SOURCE_DIR, object));
  if (result.exit_code != 0) std::fprintf(stderr, "%s\n", result.output.c_str());
  HONE_CHECK(result.exit_code == 0);
  return ReadWholeFile(object);
}

namespace {

KernelBuffer Floats(BufferRole role, std::vector<int64_t> shape) {
  return {.role = role, .dtype = "f32", .shape = std::move(shape)};
}

constexpr char kOpenClCode[] = R"(
kernel void add_bias(global const float* x, global const float* bias, global float* y) {
  y[get_global_id(0)] = x[get_global_id(0)] + bias[get_local_id(0)];
}
kernel void scale_up(global const float* x, global float* scratch) {
  scratch[get_global_id(0)] = 2.0f * x[get_global_id(0)];
}
kernel void scale_out(global const float* scratch, global float* y) { y[get_global_id(0)] = scratch[get_global_id(0)]; }
)";

// The bodies do nothing: the fake driver has kernels of these names (tests/unit/drivers/fake_cuda.cc).
constexpr char kPtxCode[] = R"(.version 4.2
.target sm_53
.address_size 64
.visible .entry add_bias(.param .u64 x, .param .u64 bias, .param .u64 y) { ret; }
.version 4.2
.target sm_53
.address_size 64
.visible .entry scale_up(.param .u64 x, .param .u64 scratch) { ret; }
.visible .entry scale_out(.param .u64 scratch, .param .u64 y) { ret; }
)";

// A program without kernels and code.
package::PackageProgram TinyModel() {
  using package::DType;
  using package::TensorKind;
  enum : package::TensorId { kX, kBiasTensor, kSum, kY, kXOut, kBiasOut };
  package::PackageProgram program;
  program.tensors = {
      {.name = "x", .dtype = DType::kFloat32, .shape = {kRows, kColumns}, .kind = TensorKind::kInput},
      {.name = "bias",
       .dtype = DType::kFloat32,
       .shape = {kColumns},
       .kind = TensorKind::kConstant,
       .data = {reinterpret_cast<const uint8_t*>(kBias.data()), sizeof kBias}},
      {.name = "", .dtype = DType::kFloat32, .shape = {kRows, kColumns}, .kind = TensorKind::kIntermediate},
      {.name = "y", .dtype = DType::kFloat32, .shape = {kRows, kColumns}, .kind = TensorKind::kOutput},
      {.name = "x_out", .dtype = DType::kFloat32, .shape = {kRows, kColumns}, .kind = TensorKind::kOutput},
      {.name = "bias_out", .dtype = DType::kFloat32, .shape = {kColumns}, .kind = TensorKind::kOutput},
  };
  program.calls = {{.kernel = 0, .arguments = {kX, kBiasTensor, kSum}}, {.kernel = 1, .arguments = {kSum, kY}}};
  program.inputs = {kX};
  program.outputs = {kY, kXOut, kBiasOut};
  program.copies = {{kX, kXOut}, {kBiasTensor, kBiasOut}};
  const KernelBuffer in = Floats(BufferRole::kInput, {kRows, kColumns});
  const KernelBuffer out = Floats(BufferRole::kOutput, {kRows, kColumns});
  program.kernels = {{.name = "add_bias", .buffers = {in, Floats(BufferRole::kConstant, {kColumns}), out}},
                     {.name = "scale", .buffers = {in, out}, .workspace_bytes = kRows * kColumns * sizeof(float)}};
  return program;
}

}  // namespace

package::PackageProgram TinyProgram(std::string shared_object) {
  package::PackageProgram program = TinyModel();
  program.units[0].kind = *runtime::HostCode();
  program.units[0].code = std::move(shared_object);
  for (KernelInterface& kernel : program.kernels) kernel.main = {{.function = kernel.name}};
  HONE_CHECK(package::PlanArena(program).ok());
  return program;
}

namespace {

package::PackageProgram ProgramOfLaunches(CodeKind kind, const char* code) {
  package::PackageProgram program = TinyModel();
  program.units[0].kind = kind;
  program.units[0].code = code;
  program.units[0].lanes = kColumns;
  program.kernels[0].main = {{"add_bias", kRows, kColumns, {0, 1, 2}}};
  program.kernels[1].buffers.push_back(Floats(BufferRole::kWorkspace, {kRows, kColumns}));
  program.kernels[1].main = {{"scale_up", kRows, kColumns, {0, 2}}, {"scale_out", kRows, kColumns, {2, 1}}};
  HONE_CHECK(package::PlanArena(program).ok());
  return program;
}

}  // namespace

package::PackageProgram TinyOpenClProgram() { return ProgramOfLaunches(CodeKind::kOpenCl, kOpenClCode); }
package::PackageProgram TinyCudaProgram() { return ProgramOfLaunches(CodeKind::kPtx, kPtxCode); }

package::PackageProgram TinySplitProgram(package::PackageProgram device, std::string shared_object) {
  enum : package::TensorId { kBiasTensor = 1, kSum, kY, kBiasOut = 5, kSumOnCpu, kScaledOnCpu, kScaled };
  package::PackageProgram program = std::move(device);
  const package::PackageProgram cpu = TinyProgram(std::move(shared_object));
  program.units[0].target = "device";
  program.units.push_back(cpu.units[0]);
  program.units[1].target = "cpu";
  program.kernels[1] = cpu.kernels[1];
  program.kernel_units = {0, 1};
  for (const uint32_t home : {1, 1, 0}) {
    program.tensors.push_back(program.tensors[kSum]);
    program.tensors.back().home = home;
  }
  program.tensors[kBiasOut].home = 1;
  program.calls = {program.calls[0],
                   {.kernel = 1, .arguments = {kSumOnCpu, kScaledOnCpu}},
                   {.kernel = 0, .arguments = {kScaled, kBiasTensor, kY}}};
  program.borders = {{kSum, kSumOnCpu, 1}, {kScaledOnCpu, kScaled, 2}};
  package::AssignHomes(program);
  HONE_CHECK(package::PlanArena(program).ok());
  return program;
}

std::vector<float> TinySplitOutput() {
  std::vector<float> y = TinyOutput(2);
  for (size_t i = 0; i < y.size(); ++i) y[i] += kBias[i % kColumns];
  return y;
}

void OpenRows(package::PackageProgram& program) {
  const ir::Size rows = ir::Size::Open({"rows", 0, kRows});
  program.sizes = {{"rows", 0, kRows}};
  for (package::PackageTensor& tensor : program.tensors) {
    tensor.extents = {tensor.shape.begin(), tensor.shape.end()};
    if (tensor.shape.size() == 2) tensor.extents[0] = rows;
  }
  for (KernelInterface& kernel : program.kernels) {
    const auto place = static_cast<uint32_t>(kernel.argument_count());  // before the workspace
    kernel.buffers.insert(kernel.buffers.begin() + place, {.role = BufferRole::kSizes, .dtype = "i64", .shape = {1}});
    for (KernelLaunch& launch : kernel.main) {
      if (launch.lanes > 0) launch.groups_value = 0;
      for (uint32_t& argument : launch.arguments) argument += argument >= place ? 1 : 0;
    }
  }
  for (package::PackageCall& call : program.calls) {
    call.arguments.push_back(0);
    call.sizes = {rows};
  }
}

void LaunchNothingForY(package::PackageProgram& program) {
  for (package::PackageTensor& tensor : program.tensors) {
    if (tensor.name == "y") tensor.shape = {0, kColumns};
  }
  KernelInterface& scale = program.kernels[1];
  scale.buffers[1].shape = {0, kColumns};
  scale.main = {};
}

void AddProgram(package::PackageContents& contents, package::PackageProgram program, const std::string& target) {
  if (program.units.size() == 1) program.units[0].target = target;
  contents.programs.push_back(std::move(program));
  contents.metadata.programs.push_back({target,
                                        {{"add_bias", "Add", std::string(64, 'a'), "parallel(r)", 32, 288},
                                         {"scale", "Mul", std::string(64, 'b'), "serial", 32, 256}}});
}

package::PackageContents TinyContents(std::string shared_object) {
  package::PackageContents contents;
  contents.metadata = {.model_name = "tiny", .compiler_version = "test"};
  AddProgram(contents, TinyProgram(std::move(shared_object)), "cpu");
  return contents;
}

void WriteTinyPackage(const std::string& path, const package::PackageContents& contents) {
  const absl::StatusOr<uint64_t> written = package::WritePackage(contents, path);
  if (!written.ok()) std::fprintf(stderr, "%s\n", std::string(written.status().message()).c_str());
  HONE_CHECK(written.ok());
}

std::vector<float> TinyInput() {
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.5f * static_cast<float>(i) - 3;
  return x;
}

std::vector<float> TinyOutput(float scale) {
  std::vector<float> y = TinyInput();
  for (size_t i = 0; i < y.size(); ++i) y[i] = scale * (y[i] + kBias[i % kColumns]);
  return y;
}

}  // namespace hone::tests
