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

namespace hone::testing {

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

package::PackageContents TinyContents(std::string shared_object) {
  using package::DType;
  using package::TensorKind;
  enum : package::TensorId { kX, kBiasTensor, kSum, kY, kXOut, kBiasOut };
  package::PackageContents contents;
  contents.arch = *runtime::HostArch();
  contents.shared_object = std::move(shared_object);
  contents.tensors = {
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
  contents.calls = {
      {.symbol = "add_bias", .arguments = {kX, kBiasTensor, kSum}},
      {.symbol = "scale", .arguments = {kSum, kY}, .workspace_bytes = kRows * kColumns * sizeof(float)},
  };
  contents.inputs = {kX};
  contents.outputs = {kY, kXOut, kBiasOut};
  contents.copies = {{kX, kXOut}, {kBiasTensor, kBiasOut}};
  contents.metadata = {.model_name = "tiny",
                       .target = "cpu",
                       .compiler_version = "test",
                       .kernels = {{"add_bias", "Add", std::string(64, 'a'), "parallel(r)", 32, 288},
                                   {"scale", "Mul", std::string(64, 'b'), "serial", 32, 256}}};
  HONE_CHECK(package::PlanArena(contents).ok());
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

}  // namespace hone::testing
