// SPDX-License-Identifier: Apache-2.0
// A part of the model that ONNX Runtime computes instead of a kernel (CodeKind::kOnnx): one session, which works on the
// buffers of its calls without copies.
//
// The library is loaded only if the caller of hone_load or the environment of the process allows it, because a package
// alone must not decide that. Not here: loading it (drivers/onnx_runtime.h). Only cpu_backend.cc uses it. Start with
// ForeignPart::Load.
#ifndef HONE_DEPLOY_RUNTIME_FOREIGN_PART_H_
#define HONE_DEPLOY_RUNTIME_FOREIGN_PART_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/kernel_interface.h"
#include "deploy/runtime/fault.h"
#include "drivers/onnx_runtime.h"

namespace hone::runtime {

// One thread at a time may use it.
class ForeignPart {
 public:
  // Makes the session. kernel: its description, which must outlive the part. code: that of its unit, which must, too.
  // is_allowed: BackendOptions::allows_onnx_runtime. BadPackage: the code has no model for the kernel, or one with
  // other inputs or outputs. Incompatible: the library is not allowed, or not there, or it refuses the model.
  static Fault Load(const KernelInterface& kernel, std::span<const uint8_t> code, bool is_allowed, int threads,
                    ForeignPart* part);

  // Computes a call. buffers: one address per argument of the kernel.
  Fault Run(void* const* buffers, int threads);

 private:
  Fault Open(int threads);
  // Appends the buffer's current shape. sizes: the elements of the buffer of sizes, or null; moves on behind those of
  // this buffer.
  void AddShape(const KernelBuffer& buffer, const int64_t** sizes);

  const KernelInterface* kernel_ = nullptr;
  std::span<const uint8_t> model_;
  drivers::onnx_runtime::Session session_;
  int threads_ = 0;
  std::vector<int> element_types_;  // per argument; 0 for the buffer of sizes
  // For one call; kept so that their memory is.
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<drivers::onnx_runtime::Tensor> inputs_, outputs_;
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_FOREIGN_PART_H_
