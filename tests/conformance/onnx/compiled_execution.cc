// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/run_program.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "compiler/target/target.h"
#include "deploy/package/compile_kernels.h"
#include "deploy/package/compile_model.h"
#include "deploy/runtime/dtype.h"
#include "deploy/runtime/hone.h"
#include "drivers/cuda.h"
#include "drivers/opencl.h"
#include "fmt/format.h"
#include "tests/conformance/onnx/execution.h"

namespace hone::conformance {
namespace {

using Model = std::unique_ptr<HoneModel, decltype(&hone_free)>;

absl::Status Compile(const ImportedCase& imported, std::string_view target, const std::string& package) {
  hone::package::KernelOptions options;
  HONE_ASSIGN_OR_RETURN(options.target, target::ParseTarget(target));
  options.threads = 1;  // many cases are compiled at the same time
  return hone::package::CompilePlan(imported.plan, imported.content.name, options, package).status();
}

absl::Status RuntimeError(std::string_view what) {
  return absl::InternalError(fmt::format("{}: {}", what, hone_error()));
}

absl::Status SetInput(HoneModel* model, size_t index, const ImportedCase& imported) {
  HonePort port;
  DLTensor view;
  if (hone_input(model, index, &port) != HONE_OK || hone_get_input(model, index, &view) != HONE_OK) {
    return RuntimeError("the runtime does not give the input");
  }
  const graph::Constant* value = imported.FindInput(port.name);
  if (value == nullptr) return absl::InvalidArgumentError(fmt::format("the case gives no input '{}'", port.name));
  if (value->data->size() != port.bytes) {
    return absl::InternalError(
        fmt::format("input '{}' has {} bytes, the case gives {}", port.name, port.bytes, value->data->size()));
  }
  if (port.bytes > 0) std::memcpy(view.data, value->data->data(), port.bytes);
  return absl::OkStatus();
}

absl::StatusOr<graph::Constant> GetOutput(const HoneModel* model, size_t index) {
  HonePort port;
  DLTensor view;
  if (hone_output(model, index, &port) != HONE_OK || hone_get_output(model, index, &view) != HONE_OK) {
    return RuntimeError("the runtime does not give the output");
  }
  graph::Constant value;
  value.type.dtype = hone::package::FindDType(port.dtype)->dtype;
  value.type.shape.assign(port.shape, port.shape + port.ndim);
  const auto* first = static_cast<const std::byte*>(view.data);
  value.data = std::make_shared<const std::vector<std::byte>>(first, first + port.bytes);
  return value;
}

absl::StatusOr<std::vector<graph::Constant>> RunHere(const std::string& package, const ImportedCase& imported) {
  const HoneLoadOptions options = {sizeof(HoneLoadOptions), 2, 0};
  HoneModel* loaded = nullptr;
  if (hone_load(package.c_str(), &options, &loaded) != HONE_OK) return RuntimeError("the package does not load");
  const Model model(loaded, hone_free);
  for (size_t i = 0; i < hone_input_count(model.get()); ++i) {
    HONE_RETURN_IF_ERROR(SetInput(model.get(), i, imported));
  }
  if (hone_run(model.get()) != HONE_OK) return RuntimeError("the package does not run");
  std::vector<graph::Constant> outputs;
  for (size_t i = 0; i < hone_output_count(model.get()); ++i) {
    HONE_ASSIGN_OR_RETURN(graph::Constant output, GetOutput(model.get(), i));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// The shape that hone-run prints for the output: "output y f32[2,3]".
absl::StatusOr<ir::Shape> PrintedShape(const std::string& printed, const std::string& name) {
  const std::string begin = fmt::format("output {} ", name);
  const size_t line = printed.starts_with(begin) ? 0 : printed.find("\n" + begin) + 1;
  const size_t open = printed.find('[', line + begin.size()), close = printed.find(']', line + begin.size());
  if ((line == 0 && !printed.starts_with(begin)) || open == std::string::npos || close == std::string::npos) {
    return absl::DataLossError(fmt::format("hone-run does not tell the shape of output '{}'", name));
  }
  ir::Shape shape;
  const std::string inside = printed.substr(open + 1, close - open - 1);
  const std::vector<std::string> extents = absl::StrSplit(inside, ',', absl::SkipEmpty());
  for (const std::string& extent : extents) shape.push_back(std::stoll(extent));
  return shape;
}

absl::StatusOr<graph::Constant> ReadOutput(const std::string& path, const graph::TensorType& type) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const int64_t wanted = type.elements().value() * ir::SizeOf(type.dtype);
  if (static_cast<int64_t>(text.size()) != wanted) {
    return absl::DataLossError(fmt::format("an output has {} bytes, should have {}", text.size(), wanted));
  }
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return graph::Constant{type, std::make_shared<const std::vector<std::byte>>(first, first + text.size())};
}

absl::StatusOr<std::vector<graph::Constant>> CompileAndRunThere(const EmulatedMachine& machine,
                                                                const ImportedCase& imported) {
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
  const graph::Plan& plan = imported.plan;
  const std::string package = scratch / "model.hone";
  HONE_RETURN_IF_ERROR(Compile(imported, machine.target, package));
  std::vector<std::string> command = {machine.emulator, "-L", machine.libraries, machine.runner, package,
                                      "--threads",      "2"};
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const std::string& name = plan.tensors[plan.inputs[i]].name;
    const graph::Constant* value = imported.FindInput(name);
    if (value == nullptr) return absl::InvalidArgumentError(fmt::format("the case gives no input '{}'", name));
    const std::string path = scratch / fmt::format("input_{}", i);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(value->data->data()), static_cast<std::streamsize>(value->data->size()));
    command.insert(command.end(), {"--raw-in", name + "=" + path});
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const std::string& name = plan.tensors[plan.outputs[i]].name;
    command.insert(command.end(), {"--raw-out", fmt::format("{}={}/output_{}", name, scratch.path().string(), i)});
  }
  HONE_ASSIGN_OR_RETURN(const std::string printed, RunProgram(command));
  std::vector<graph::Constant> outputs;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const graph::PlanTensor& tensor = plan.tensors[plan.outputs[i]];
    HONE_ASSIGN_OR_RETURN(ir::Shape shape, PrintedShape(printed, tensor.name));
    const graph::TensorType type = {tensor.type.dtype, std::move(shape)};
    HONE_ASSIGN_OR_RETURN(graph::Constant output, ReadOutput(scratch / fmt::format("output_{}", i), type));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

absl::StatusOr<std::vector<graph::Constant>> CompileAndRunHere(const ImportedCase& imported,
                                                               const std::string& target) {
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
  const std::string package = scratch / "model.hone";
  HONE_RETURN_IF_ERROR(Compile(imported, target, package));
  return RunHere(package, imported);
}

// The device stays open between cases, because opening it takes longer than most cases run.
template <typename Library, typename Device>
Execution CompileForDevice(const std::string& target) {
  struct Opened {
    Library library;
    Device device;
  };
  const auto kept = std::make_shared<Opened>();
  return [=](const ImportedCase& imported) -> absl::StatusOr<std::vector<graph::Constant>> {
    if (kept->device.info().name.empty()) {
      drivers::Error error = Library::Load(&kept->library);
      if (error.ok()) error = kept->library.Open("", &kept->device);
      if (!error.ok()) return absl::UnavailableError(error.text);
    }
    return CompileAndRunHere(imported, target);
  };
}

}  // namespace

absl::StatusOr<std::vector<graph::Constant>> CompileAndRun(const ImportedCase& imported) {
  return CompileAndRunHere(imported, "cpu -threads=2");
}

Execution CompileAndEmulate(const EmulatedMachine& machine) {
  return [=](const ImportedCase& imported) { return CompileAndRunThere(machine, imported); };
}

Execution CompileForCuda(const std::string& target) {
  return CompileForDevice<drivers::cuda::Library, drivers::cuda::Device>(target);
}

Execution CompileForOpenCl() { return CompileForDevice<drivers::opencl::Library, drivers::opencl::Device>("opencl"); }

Execution CompileToPtx(const std::string& target, const std::string& assembler) {
  return [=](const ImportedCase& imported) -> absl::StatusOr<std::vector<graph::Constant>> {
    hone::package::KernelOptions options;
    HONE_ASSIGN_OR_RETURN(options.target, target::ParseTarget(target));
    options.threads = 1;
    HONE_ASSIGN_OR_RETURN(const std::vector<hone::package::CompiledKernel> kernels,
                          hone::package::CompileKernels(imported.plan.workloads, options));
    HONE_ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
    for (const hone::package::CompiledKernel& kernel : kernels) {
      for (const std::string& warning : kernel.warnings) return absl::InternalError(warning);
      if (assembler.empty()) continue;
      const std::string path = scratch / "kernel.ptx";
      std::ofstream(path) << kernel.kernel.code;
      HONE_RETURN_IF_ERROR(
          RunProgram({assembler, "-arch", options.target.cpu, path, "-o", scratch / "kernel.cubin"}).status());
    }
    return Interpret(imported);
  };
}

}  // namespace hone::conformance
