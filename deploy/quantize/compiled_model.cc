// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/compiled_model.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/target/host.h"
#include "deploy/package/compile_model.h"
#include "deploy/quantize/model_file.h"
#include "deploy/runtime/dtype.h"

namespace hone::quantize {

absl::StatusOr<CompiledModel> CompiledModel::Compile(const ModelFile& model, const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string path, model.WriteTemporary());
  absl::StatusOr<CompiledModel> compiled = CompileFile(path, options);
  if (!compiled.ok()) return model.NamedAsRead(compiled.status());
  return compiled;
}

absl::StatusOr<CompiledModel> CompiledModel::CompileFile(const std::string& path, const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  package::KernelOptions kernels = {.target = target::HostCpu(), .progress = options.progress};
  if (options.threads > 0) kernels.target.threads = options.threads;
  const std::string package_path = folder / "model.hone";
  HONE_RETURN_IF_ERROR(package::CompileModel(path, options.import, {&kernels, 1}, package_path).status());
  HONE_ASSIGN_OR_RETURN(run::LoadedPackage package,
                        run::LoadedPackage::Load(package_path, {.threads = options.threads,
                                                                .allows_onnx_runtime = options.allows_onnx_runtime,
                                                                .device = "cpu"}));
  return CompiledModel(std::move(folder), std::move(package));
}

absl::StatusOr<std::vector<run::ArrayView>> CompiledModel::Run(std::span<const run::ArrayView> arrays) {
  for (size_t i = 0; i < package_.inputs().size(); ++i) {
    const HonePort& port = package_.inputs()[i];
    const auto array = std::ranges::find(arrays, port.name, &run::ArrayView::name);
    if (array == arrays.end()) continue;  // it has a default
    std::vector<int64_t> shape(array->shape.begin(), array->shape.end());
    const DLTensor tensor = {const_cast<uint8_t*>(array->data.data()),
                             {kDLCPU, 0},
                             port.ndim,
                             port.dtype,
                             shape.data(),
                             /*strides=*/nullptr,
                             /*byte_offset=*/0};
    HONE_RETURN_IF_ERROR(run::RuntimeError(hone_set_input(package_.model(), i, &tensor)));
  }
  HONE_RETURN_IF_ERROR(package_.Run());
  return package_.Outputs();
}

absl::StatusOr<std::vector<run::ArrayView>> CompiledModel::RunOnRandomInputs() {
  HONE_RETURN_IF_ERROR(package_.FillInputs(run::kRandomInputsSeed));
  HONE_RETURN_IF_ERROR(package_.Run());
  return package_.Outputs();
}

}  // namespace hone::quantize
