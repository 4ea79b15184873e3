#include "deploy/runtime/model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/dtype.h"
#include "deploy/runtime/tensor_copy.h"

namespace hone::runtime {
namespace {

using package::TensorEntry;
using package::TensorKind;

constexpr int kMaxThreads = 4096;

Fault CheckThreads(int threads) {
  if (threads >= 0 && threads <= kMaxThreads) return {};
  return InvalidArgument("cannot run with " + std::to_string(threads) + " threads; give 0 (one per CPU) to " +
                         std::to_string(kMaxThreads));
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string TypeText(DLDataType type) {
  if (const package::DTypeTraits* traits = package::FindDType(type)) return std::string(traits->name);
  return "DLPack type " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits and " +
         std::to_string(type.lanes) + " lanes";
}

std::span<const int64_t> ShapeOf(const DLTensor& tensor) { return {tensor.shape, static_cast<size_t>(tensor.ndim)}; }

bool Overlap(const uint8_t* a, uint64_t a_bytes, const uint8_t* b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

Fault Model::Load(const std::string& path, int threads, ConstantsCheck check, std::unique_ptr<Model>* model) {
  HONE_RETURN_IF_FAULT(CheckThreads(threads));
  std::unique_ptr<Model> result(new Model);
  HONE_RETURN_IF_FAULT(Mapping::File(path, &result->file_));
  HONE_RETURN_IF_FAULT(ViewPackage(result->file_.bytes(), check, &result->package_));
  const package::ManifestHeader& manifest = *result->package_.manifest;
  HONE_RETURN_IF_FAULT(CheckHostRuns(manifest.arch, result->package_.Text(manifest.cpu_features)));
  HONE_RETURN_IF_FAULT(Mapping::Pages(manifest.io_bytes, "inputs and outputs", &result->io_));
  HONE_RETURN_IF_FAULT(Mapping::Pages(manifest.arena_bytes, "the arena", &result->arena_));
  HONE_RETURN_IF_FAULT(CodeObject::Load(result->package_.shared_object, &result->code_));
  HONE_RETURN_IF_FAULT(result->FindKernels());
  result->PlaceTensors();
  result->input_set_.assign(result->package_.inputs.size(), false);
  result->pool_ = std::make_unique<ThreadPool>(threads);
  *model = std::move(result);
  return {};
}

Fault Model::FindKernels() {
  buffers_.assign(package_.arguments.size(), nullptr);
  calls_.reserve(package_.calls.size());
  for (const package::CallEntry& entry : package_.calls) {
    const std::string_view symbol = package_.Text(entry.symbol);
    void* address = code_.Find(symbol.data());
    if (address == nullptr) return BadPackage("its code has no kernel '" + std::string(symbol) + "'");
    void* workspace = entry.workspace_bytes > 0 ? arena_.data() + entry.workspace_offset : nullptr;
    calls_.push_back({reinterpret_cast<HoneKernel>(address), buffers_.data() + entry.arguments, workspace});
  }
  return {};
}

void Model::PlaceTensors() {
  addresses_.assign(package_.tensors.size(), nullptr);
  for (uint32_t i = 0; i < package_.tensors.size(); ++i) {
    const TensorEntry& tensor = package_.tensors[i];
    if (tensor.bytes == 0) continue;  // its address space may be empty
    if (tensor.kind == TensorKind::kConstant) {
      addresses_[i] = const_cast<uint8_t*>(package_.constants.data()) + tensor.offset;  // mapped read-only
    } else if (tensor.kind == TensorKind::kIntermediate) {
      addresses_[i] = arena_.data() + tensor.offset;
    } else {
      addresses_[i] = OwnAddress(i);
    }
  }
  for (size_t a = 0; a < buffers_.size(); ++a) buffers_[a] = addresses_[package_.arguments[a]];
}

uint8_t* Model::OwnAddress(uint32_t tensor) const {
  const TensorEntry& entry = package_.tensors[tensor];
  return entry.bytes == 0 ? nullptr : io_.data() + entry.offset;
}

void Model::PointTensorAt(uint32_t tensor, uint8_t* address) {
  addresses_[tensor] = address;
  for (size_t a = 0; a < buffers_.size(); ++a) {
    if (package_.arguments[a] == tensor) buffers_[a] = address;
  }
}

Fault Model::CheckIndex(size_t index, std::span<const uint32_t> ids, const char* what) const {
  if (index < ids.size()) return {};
  return InvalidArgument("no " + std::string(what) + " " + std::to_string(index) + ": the model has " +
                         std::to_string(ids.size()));
}

Fault Model::CheckTensor(uint32_t tensor, const DLTensor& given) const {
  const HonePort port = PortOf(tensor);
  const std::string what = "tensor for '" + std::string(port.name) + "'";
  if (given.device.device_type != kDLCPU) return InvalidArgument(what + " is not in CPU memory");
  if (TypeText(given.dtype) != TypeText(port.dtype)) {
    return InvalidArgument(what + " has type " + TypeText(given.dtype) + ", the model wants " + TypeText(port.dtype));
  }
  if (given.ndim < 0 || (given.ndim > 0 && given.shape == nullptr)) return InvalidArgument(what + " has no shape");
  const std::span<const int64_t> wanted(port.shape, static_cast<size_t>(port.ndim));
  const std::span<const int64_t> found = ShapeOf(given);
  if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end())) {
    return InvalidArgument(what + " has shape " + ShapeText(found) + ", the model wants " + ShapeText(wanted));
  }
  if (given.data == nullptr && port.bytes > 0) return InvalidArgument(what + " has no data");
  return {};
}

Fault Model::CheckBindable(uint32_t tensor, const DLTensor& given) const {
  HONE_RETURN_IF_FAULT(CheckTensor(tensor, given));
  const std::string what = "tensor for '" + std::string(PortOf(tensor).name) + "'";
  if (!IsCompact(given)) return InvalidArgument(what + " has gaps between its elements; copy it to compact memory");
  const uint8_t* start = static_cast<const uint8_t*>(given.data) + given.byte_offset;
  if (reinterpret_cast<uintptr_t>(start) % HONE_BUFFER_ALIGNMENT != 0) {
    return InvalidArgument(what + " does not start on a multiple of " + std::to_string(HONE_BUFFER_ALIGNMENT) +
                           " bytes; align it, or let the model copy it");
  }
  const bool is_output = package_.tensors[tensor].kind == TensorKind::kOutput;
  for (uint32_t other = 0; other < package_.tensors.size(); ++other) {
    const TensorEntry& entry = package_.tensors[other];
    const bool conflicts = entry.kind == TensorKind::kOutput || (is_output && entry.kind == TensorKind::kInput);
    if (other == tensor || !conflicts) continue;
    if (Overlap(start, package_.tensors[tensor].bytes, addresses_[other], entry.bytes)) {
      return InvalidArgument(what + " overlaps the memory of '" + std::string(package_.Text(entry.name)) + "'");
    }
  }
  return {};
}

HonePort Model::PortOf(uint32_t tensor) const {
  const TensorEntry& entry = package_.tensors[tensor];
  return {package_.Text(entry.name).data(), package::FindDType(entry.dtype)->dlpack, entry.rank,
          package_.Shape(entry).data(), entry.bytes};
}

DLTensor Model::ViewOf(uint32_t tensor) const {
  const HonePort port = PortOf(tensor);
  // DLPack has no const; the standard asks readers not to write the shape.
  return {addresses_[tensor], {kDLCPU, 0}, port.ndim, port.dtype, const_cast<int64_t*>(port.shape), nullptr, 0};
}

Fault Model::InputPort(size_t index, HonePort* port) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.inputs, "input"));
  *port = PortOf(package_.inputs[index]);
  return {};
}

Fault Model::OutputPort(size_t index, HonePort* port) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.outputs, "output"));
  *port = PortOf(package_.outputs[index]);
  return {};
}

Fault Model::SetInput(size_t index, const DLTensor& tensor) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.inputs, "input"));
  const uint32_t id = package_.inputs[index];
  HONE_RETURN_IF_FAULT(CheckTensor(id, tensor));
  PointTensorAt(id, OwnAddress(id));
  CopyToCompact(tensor, addresses_[id]);
  input_set_[index] = true;
  return {};
}

Fault Model::InputView(size_t index, DLTensor* view) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.inputs, "input"));
  const uint32_t id = package_.inputs[index];
  PointTensorAt(id, OwnAddress(id));
  input_set_[index] = true;
  *view = ViewOf(id);
  return {};
}

Fault Model::BindInput(size_t index, const DLTensor& tensor) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.inputs, "input"));
  const uint32_t id = package_.inputs[index];
  HONE_RETURN_IF_FAULT(CheckBindable(id, tensor));
  PointTensorAt(id, static_cast<uint8_t*>(tensor.data) + tensor.byte_offset);
  input_set_[index] = true;
  return {};
}

Fault Model::BindOutput(size_t index, const DLTensor& tensor) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.outputs, "output"));
  const uint32_t id = package_.outputs[index];
  HONE_RETURN_IF_FAULT(CheckBindable(id, tensor));
  PointTensorAt(id, static_cast<uint8_t*>(tensor.data) + tensor.byte_offset);
  return {};
}

Fault Model::OutputView(size_t index, DLTensor* view) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, package_.outputs, "output"));
  *view = ViewOf(package_.outputs[index]);
  return {};
}

Fault Model::CheckInputsSet() const {
  for (size_t i = 0; i < input_set_.size(); ++i) {
    if (input_set_[i]) continue;
    return InvalidArgument("input '" + std::string(PortOf(package_.inputs[i]).name) + "' has never been set");
  }
  return {};
}

void Model::DoCopies() {
  for (const package::CopyEntry& copy : package_.copies) {
    const uint64_t bytes = package_.tensors[copy.target].bytes;
    if (bytes > 0) std::memcpy(addresses_[copy.target], addresses_[copy.source], bytes);
  }
}

Fault Model::Run() {
  HONE_RETURN_IF_FAULT(CheckInputsSet());
  HoneParallel* parallel = pool_->parallel();
  for (const Call& call : calls_) call.kernel(call.buffers, call.workspace, parallel);
  DoCopies();
  return {};
}

Fault Model::RunProfiled(std::span<int64_t> nanoseconds) {
  if (nanoseconds.size() != calls_.size()) {
    return InvalidArgument("room for " + std::to_string(nanoseconds.size()) + " times, the model has " +
                           std::to_string(calls_.size()) + " calls");
  }
  HONE_RETURN_IF_FAULT(CheckInputsSet());
  HoneParallel* parallel = pool_->parallel();
  auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < calls_.size(); ++i) {
    calls_[i].kernel(calls_[i].buffers, calls_[i].workspace, parallel);
    const auto end = std::chrono::steady_clock::now();
    nanoseconds[i] = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
    start = end;
  }
  DoCopies();
  return {};
}

Fault Model::SetThreads(int threads) {
  HONE_RETURN_IF_FAULT(CheckThreads(threads));
  auto pool = std::make_unique<ThreadPool>(threads);
  pool_ = std::move(pool);
  return {};
}

}  // namespace hone::runtime
