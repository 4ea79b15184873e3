// SPDX-License-Identifier: Apache-2.0
// A back end runs a program: the only interface between a model and the hardware that computes it.
//
// A back end owns the program's code, the memory of its kernels, and the constants if it needs its own copy of them.
// The model (model.h) owns the file and the memory of inputs and outputs, which is in this process. A back end whose
// kernels cannot reach that memory copies before and after each run. Not a check of the package: program_view.h has
// done it. Start with LoadBackend, and with cpu_backend.cc as the simplest back end.
#ifndef HONE_DEPLOY_RUNTIME_BACKEND_H_
#define HONE_DEPLOY_RUNTIME_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/hone_dlpack.h"
#include "deploy/runtime/program_view.h"

namespace hone::runtime {

// One thread at a time may use it. Tensors are indices into ProgramView::tensors.
class Backend {
 public:
  virtual ~Backend() = default;

  // From the next Run on, reads the input `tensor` from `host`, or writes the output `tensor` to it. The memory is not
  // owned, has the tensor's size and starts on a multiple of kTensorAlignment; it is null if the tensor has no bytes.
  // The model calls this for every input and output before the first Run. The contents may change between runs without
  // another call.
  virtual void SetPortMemory(uint32_t tensor, uint8_t* host) = 0;

  // SetPortMemory for memory of a device. `memory` is not owned, has the tensor's size and is aligned to its elements
  // only. Returns false, and changes nothing, if the back end does not take memory of that device.
  virtual bool PlaceOnDevice(uint32_t /*tensor*/, DLDevice /*device*/, void* /*memory*/) { return false; }
  // The name of the device whose memory PlaceOnDevice takes, for error texts; empty if it takes none.
  virtual std::string DeviceTaken() const { return ""; }

  // Runs all calls in order, then the copies, and returns when all outputs are written to their places.
  // nanoseconds: empty, or one element per call, which receives the time of the call.
  virtual Fault Run(std::span<int64_t> nanoseconds) = 0;

  // The threads of this process that compute; `threads` is as in HoneLoadOptions. A back end of a device ignores
  // SetThreads, and its threads() is 1.
  virtual void SetThreads(int threads) = 0;
  virtual int threads() const = 0;
};

// Makes a program ready to run. Incompatible: this machine cannot run it, and the text says why. Every other error is
// about this attempt only. The back end refers to `program` and `constants`: both must outlive it. *backend is set on
// success only.
using LoadFunction = Fault(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                           std::unique_ptr<Backend>* backend);
using BackendLoader = std::function<LoadFunction>;

// The loader for all kinds of code: calls the loader of the program's kind (backends.h). BadPackage: the kind is
// unknown. Incompatible: this runtime was built without the driver for it.
Fault LoadBackend(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                  std::unique_ptr<Backend>* backend);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_BACKEND_H_
