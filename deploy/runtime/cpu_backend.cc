// SPDX-License-Identifier: Apache-2.0
// The back end of this machine's CPU: kernels are functions of shared objects, one for each unit, and are called on
// memory of this process. They use inputs, outputs and constants in place; only the program's copies copy memory.
// Parts that ONNX Runtime computes work in the same memory (foreign_part.h).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/cpu_cores.h"
#include "base/kernel_abi.h"
#include "base/thread_pool.h"
#include "deploy/runtime/backends.h"
#include "deploy/runtime/code_object.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/foreign_part.h"
#include "deploy/runtime/memory.h"

namespace hone::runtime {
namespace {

using package::TensorEntry;
using package::TensorKind;

class CpuBackend : public Backend {
 public:
  CpuBackend(const ProgramView& program, uint32_t home)
      : program_(program), home_(home), codes_(program.units.size()) {}

  Fault Load(std::span<const uint8_t> constants, const BackendOptions& options) {
    HONE_RETURN_IF_FAULT(Mapping::Pages(program_.homes[home_].arena_bytes, "the arena", &arena_));
    for (const uint32_t unit : program_.homes[home_].units) {
      if (program_.units[unit].entry.code == CodeKind::kOnnx) continue;
      HONE_RETURN_IF_FAULT(CodeObject::Load(program_.units[unit].code, &codes_[unit]));
    }
    pool_ = options.pool != nullptr ? options.pool : std::make_shared<ThreadPool>(options.threads);
    HONE_RETURN_IF_FAULT(FindKernels(options));
    AddCalls();
    PlaceTensors(constants);
    return {};
  }

  void SetPortMemory(uint32_t tensor, uint8_t* host) override { Place(tensor, host); }

  Fault CopyBytes(uint32_t source, uint32_t target, uint64_t offset, uint64_t bytes) override {
    if (bytes > 0) std::memmove(addresses_[target] + offset, addresses_[source], bytes);
    return {};
  }
  Fault ReadBytes(uint32_t tensor, std::span<uint8_t> to) override {
    std::memcpy(to.data(), addresses_[tensor], to.size());
    return {};
  }
  Fault WriteBytes(uint32_t tensor, uint64_t offset, std::span<const uint8_t> from) override {
    std::memcpy(addresses_[tensor] + offset, from.data(), from.size());
    return {};
  }
  Fault SwapMemory(uint32_t a, uint32_t b) override {
    uint8_t* const old = addresses_[a];
    Place(a, addresses_[b]);
    Place(b, old);
    return {};
  }

  Fault SetSizes(const SizeValues& sizes) override {
    sizes_ = &sizes;
    for (const package::CallEntry& call : program_.calls) {
      const KernelInterface& kernel = program_.Kernel(call);
      for (const uint32_t a : kernel.Of(BufferRole::kSizes)) {
        buffers_[call.arguments + a] = const_cast<int64_t*>(sizes.arguments()) + program_.arguments[call.arguments + a];
      }
    }
    return {};
  }

  Fault Run(const Segment& segment, std::span<int64_t> nanoseconds) override {
    pool_->ResetAfterFork();
    HoneParallel* parallel = pool_->parallel();
    const ScopedCpuAffinity with_workers(pool_->caller_cpus());
    if (nanoseconds.empty()) {
      for (uint32_t i = segment.first; i < segment.end; ++i) HONE_RETURN_IF_FAULT(Do(calls_[i], parallel));
    } else {
      auto start = std::chrono::steady_clock::now();
      for (uint32_t i = segment.first; i < segment.end; ++i) {
        HONE_RETURN_IF_FAULT(Do(calls_[i], parallel));
        const auto end = std::chrono::steady_clock::now();
        nanoseconds[i] += std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
        start = end;
      }
    }
    if (!segment.ends) return {};
    for (const package::CopyEntry& copy : program_.homes[home_].copies) {
      const uint64_t bytes = sizes_->Bytes(copy.target);
      if (bytes > 0) std::memcpy(addresses_[copy.target], addresses_[copy.source], bytes);
    }
    return {};
  }

  Fault Wait() override { return {}; }
  uint8_t* HostMemory(uint32_t tensor) override { return addresses_[tensor]; }
  Fault Read(uint32_t tensor, uint8_t* host) override {
    std::memcpy(host, addresses_[tensor], sizes_->Bytes(tensor));
    return {};
  }
  Fault Write(uint32_t tensor, const uint8_t* host) override {
    std::memcpy(addresses_[tensor], host, sizes_->Bytes(tensor));
    return {};
  }

  void SetThreads(int threads) override { pool_ = std::make_shared<ThreadPool>(threads); }
  int threads() const override { return pool_->threads(); }
  std::shared_ptr<ThreadPool> Pool() const override { return pool_; }
  void SharePool(const std::shared_ptr<ThreadPool>& pool) override { pool_ = pool; }

 private:
  struct Call {
    std::span<const HoneKernel> launches;          // a part of functions_
    void* const* buffers;                          // points into buffers_
    void* workspace;                               // in the arena; null if the kernel needs none
    ForeignPart* foreign = nullptr;                // set if ONNX Runtime computes the call
    const package::UpdateEntry* update = nullptr;  // set if the call can update an input in place
  };

  void Place(uint32_t tensor, uint8_t* address) {
    addresses_[tensor] = address;
    for (const uint32_t argument : arguments_of_[tensor]) buffers_[argument] = address;
  }

  Fault Do(const Call& call, HoneParallel* parallel) const {
    if (call.foreign != nullptr) return call.foreign->Run(call.buffers, pool_->threads());
    if (call.update != nullptr && addresses_[call.update->input] == addresses_[call.update->output]) {
      WriteRows(*call.update);
      return {};
    }
    for (const HoneKernel launch : call.launches) launch(call.buffers, call.workspace, parallel);
    return {};
  }

  // Where the rows of entry b of the batch begin along the axis.
  int64_t StartOf(const package::UpdateEntry& update, uint64_t b) const {
    if (update.starts == package::kNoTensor) return 0;
    const uint64_t element = SizeOf(program_.tensors[update.starts].dtype);
    if ((b + 1) * element > sizes_->Bytes(update.starts)) return 0;
    const uint8_t* const place = addresses_[update.starts] + b * element;
    int64_t wide = 0;
    int32_t narrow = 0;
    std::memcpy(element == sizeof wide ? static_cast<void*>(&wide) : &narrow, place, element);
    return element == sizeof wide ? wide : narrow;
  }

  // Writes the rows of an update in place. Rows beyond either end of the axis are left out, as the kernel does.
  void WriteRows(const package::UpdateEntry& update) const {
    const std::span<const int64_t> shape = sizes_->Shape(update.output);
    const uint64_t bytes = sizes_->Bytes(update.output);
    if (bytes == 0) return;
    const auto axis_extent = shape[update.axis];
    uint64_t parts = 1;  // the products of the dimensions between the batch and the axis
    for (uint32_t d = 1; d < update.axis; ++d) parts *= static_cast<uint64_t>(shape[d]);
    const auto batch = static_cast<uint64_t>(shape[0]);
    const uint64_t row_bytes = bytes / (batch * parts * static_cast<uint64_t>(axis_extent));
    const uint64_t rows_bytes = sizes_->Bytes(update.rows) / (batch * parts);
    const auto rows = static_cast<int64_t>(rows_bytes / row_bytes);
    for (uint64_t b = 0; b < batch; ++b) {
      const int64_t start = StartOf(update, b);
      if (start >= axis_extent || start <= -rows) continue;
      const int64_t first = std::max<int64_t>(start, 0), end = std::min(start + rows, axis_extent);
      for (uint64_t part = b * parts; part < (b + 1) * parts; ++part) {
        const uint8_t* const source = addresses_[update.rows] + part * rows_bytes;
        uint8_t* const target = addresses_[update.output] + part * row_bytes * static_cast<uint64_t>(axis_extent);
        std::memcpy(target + static_cast<uint64_t>(first) * row_bytes,
                    source + static_cast<uint64_t>(first - start) * row_bytes,
                    static_cast<uint64_t>(end - first) * row_bytes);
      }
    }
  }

  Fault FindKernels(const BackendOptions& options) {
    functions_.resize(program_.kernels.size());
    foreign_.resize(program_.kernels.size());
    for (size_t k = 0; k < functions_.size(); ++k) {
      const uint32_t unit = program_.kernel_units[k];
      if (program_.units[unit].entry.home != home_) continue;
      if (program_.units[unit].entry.code == CodeKind::kOnnx) {
        foreign_[k] = std::make_unique<ForeignPart>();
        HONE_RETURN_IF_FAULT(ForeignPart::Load(program_.kernels[k], program_.units[unit].code,
                                               options.allows_onnx_runtime, pool_->threads(), foreign_[k].get()));
        continue;
      }
      for (const KernelLaunch& launch : program_.kernels[k].main) {
        void* address = codes_[unit].Find(launch.function.c_str());
        if (address == nullptr) return BadPackage("its code has no kernel '" + launch.function + "'");
        functions_[k].push_back(reinterpret_cast<HoneKernel>(address));
      }
    }
    return {};
  }

  void AddCalls() {
    buffers_.assign(program_.arguments.size(), nullptr);
    arguments_of_.resize(program_.tensors.size());
    calls_.reserve(program_.calls.size());
    for (const package::CallEntry& call : program_.calls) {
      const std::span<const uint32_t> arguments = program_.Arguments(call);
      for (uint32_t a = 0; a < arguments.size(); ++a) {
        const bool is_tensor = program_.Kernel(call).buffers[a].role != BufferRole::kSizes;
        if (is_tensor && arguments[a] != package::kNoTensor) arguments_of_[arguments[a]].push_back(call.arguments + a);
      }
      void* workspace = program_.Kernel(call).workspace_bytes > 0 ? arena_.data() + call.workspace_offset : nullptr;
      calls_.push_back(
          {functions_[call.kernel], buffers_.data() + call.arguments, workspace, foreign_[call.kernel].get()});
    }
    for (const package::UpdateEntry& update : program_.updates) calls_[update.call].update = &update;
  }

  void PlaceTensors(std::span<const uint8_t> constants) {
    addresses_.assign(program_.tensors.size(), nullptr);
    for (uint32_t i = 0; i < program_.tensors.size(); ++i) {
      const TensorEntry& tensor = program_.tensors[i];
      if (tensor.bytes == 0) continue;  // its address space may have no memory
      if (tensor.kind != TensorKind::kConstant && tensor.home != home_) continue;
      if (tensor.kind == TensorKind::kConstant) {
        addresses_[i] = const_cast<uint8_t*>(constants.data()) + tensor.offset;  // mapped read-only, never written
      } else if (tensor.kind == TensorKind::kIntermediate) {
        addresses_[i] = arena_.data() + tensor.offset;
      }
    }
    for (uint32_t i = 0; i < addresses_.size(); ++i) Place(i, addresses_[i]);
  }

  const ProgramView& program_;
  const uint32_t home_;
  std::vector<CodeObject> codes_;  // per unit of the program; empty for those of other homes
  Mapping arena_;
  std::vector<std::vector<HoneKernel>> functions_;     // per kernel of the home: the functions of its `main`, in order
  std::vector<std::unique_ptr<ForeignPart>> foreign_;  // per kernel: set for those that ONNX Runtime computes
  std::vector<uint8_t*> addresses_;                    // per tensor; null for a tensor without bytes or of another home
  std::vector<void*> buffers_;                         // addresses of ProgramView::arguments; null for kNoTensor
  std::vector<std::vector<uint32_t>> arguments_of_;    // per tensor: the places in buffers_ that have its address
  const SizeValues* sizes_ = nullptr;
  std::vector<Call> calls_;  // per call of the program; those of other homes launch nothing
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace

Fault LoadCpuBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                     const BackendOptions& options, std::unique_ptr<Backend>* backend) {
  for (const uint32_t unit : program.homes[home].units) {
    const package::UnitEntry& entry = program.units[unit].entry;
    if (entry.code == CodeKind::kOnnx) continue;
    HONE_RETURN_IF_FAULT(CheckHostRuns(entry.code, program.Text(entry.cpu_features)));
  }
  auto result = std::make_unique<CpuBackend>(program, home);
  HONE_RETURN_IF_FAULT(result->Load(constants, options));
  *backend = std::move(result);
  return {};
}

}  // namespace hone::runtime
