// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/foreign_part.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/element_type.h"
#include "deploy/runtime/driver_fault.h"

namespace hone::runtime {
namespace {

using drivers::onnx_runtime::Session;
using drivers::onnx_runtime::Tensor;

// The model of the kernel's function in the code of its unit (CodeKind::kOnnx). Empty if there is none.
std::span<const uint8_t> FindModel(const KernelInterface& kernel, std::span<const uint8_t> code) {
  constexpr std::string_view kPrefix = "model";
  if (kernel.main.size() != 1) return {};
  const std::string_view function = kernel.main.front().function;
  uint32_t number = 0;
  if (!function.starts_with(kPrefix)) return {};
  const auto [end, error] =
      std::from_chars(function.data() + kPrefix.size(), function.data() + function.size(), number);
  if (error != std::errc() || end != function.data() + function.size()) return {};
  for (uint64_t bytes = 0; code.size() >= sizeof bytes; code = code.subspan(bytes)) {
    std::memcpy(&bytes, code.data(), sizeof bytes);
    code = code.subspan(sizeof bytes);
    if (bytes > code.size()) return {};
    if (number-- == 0) return code.first(bytes);
  }
  return {};
}

Fault CheckAllowed(bool is_allowed) {
  if (is_allowed || drivers::onnx_runtime::NamedLibrary() != nullptr) return {};
  return Incompatible(
      "ONNX Runtime computes a part of the model, and nothing allows this process to load its library; give --fallback "
      "onnxruntime, or load the package with HONE_LOAD_ALLOW_ONNX_RUNTIME, or set the environment variable " +
      std::string(drivers::onnx_runtime::kLibraryVariable) + " to the path of libonnxruntime.so.1");
}

}  // namespace

Fault ForeignPart::Load(const KernelInterface& kernel, std::span<const uint8_t> code, bool is_allowed, int threads,
                        ForeignPart* part) {
  HONE_RETURN_IF_FAULT(CheckAllowed(is_allowed));
  part->kernel_ = &kernel;
  part->model_ = FindModel(kernel, code);
  if (part->model_.empty()) return BadPackage("its code has no model for '" + kernel.name + "'");
  size_t dimensions = 0;
  for (size_t a = 0; a < kernel.argument_count(); ++a) {
    const KernelBuffer& buffer = kernel.buffers[a];
    const bool is_tensor = buffer.role == BufferRole::kInput || buffer.role == BufferRole::kOutput;
    if (!is_tensor && buffer.role != BufferRole::kSizes) return BadPackage("'" + kernel.name + "' is no foreign part");
    if (is_tensor && !buffer.used) return BadPackage("'" + kernel.name + "' leaves out an argument");
    part->element_types_.push_back(is_tensor ? OnnxNumber(*ParseDType(buffer.dtype)) : 0);
    dimensions += is_tensor ? buffer.shape.size() : 0;
  }
  if (kernel.size_count() != 0 && kernel.size_count() != dimensions) {
    return BadPackage("'" + kernel.name + "' does not have one size for each dimension");
  }
  part->shapes_.resize(kernel.argument_count());
  HONE_RETURN_IF_FAULT(part->Open(threads));
  if (part->session_.inputs() != kernel.Of(BufferRole::kInput).size() ||
      part->session_.outputs() != kernel.Of(BufferRole::kOutput).size()) {
    return BadPackage("the model of '" + kernel.name + "' has other inputs or outputs than its calls");
  }
  return {};
}

Fault ForeignPart::Open(int threads) {
  threads_ = threads;
  return ToFault(Session::Open(model_, threads, &session_));
}

void ForeignPart::AddShape(const KernelBuffer& buffer, const int64_t** sizes) {
  const auto argument = static_cast<size_t>(&buffer - kernel_->buffers.data());
  std::vector<int64_t>& shape = shapes_[argument];
  shape = buffer.shape;
  if (*sizes == nullptr) return;
  for (int64_t& extent : shape) extent = std::clamp<int64_t>(*(*sizes)++, 0, extent);
}

Fault ForeignPart::Run(void* const* buffers, int threads) {
  if (!session_.IsOfThisProcess() || threads != threads_) HONE_RETURN_IF_FAULT(Open(threads));
  const std::vector<uint32_t> of_sizes = kernel_->Of(BufferRole::kSizes);
  const auto* sizes = of_sizes.empty() ? nullptr : static_cast<const int64_t*>(buffers[of_sizes.front()]);
  inputs_.clear();
  outputs_.clear();
  for (size_t a = 0; a < kernel_->argument_count(); ++a) {
    const KernelBuffer& buffer = kernel_->buffers[a];
    if (buffer.role == BufferRole::kSizes) continue;
    AddShape(buffer, &sizes);
    auto bytes = static_cast<uint64_t>(BytesOfDType(buffer.dtype));
    for (const int64_t extent : shapes_[a]) bytes *= static_cast<uint64_t>(extent);
    (buffer.role == BufferRole::kInput ? inputs_ : outputs_)
        .push_back({.element_type = element_types_[a], .shape = shapes_[a], .data = buffers[a], .bytes = bytes});
  }
  return ToRunFault(session_.Run(inputs_, outputs_));
}

}  // namespace hone::runtime
