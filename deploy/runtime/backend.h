// SPDX-License-Identifier: Apache-2.0
// What runs a program: the one interface between a model and the hardware it runs on.
//
// A back end holds the program's code, the memory its kernels work in, and what it has made of the constants. The model
// (model.h) holds the file and the inputs and outputs, in memory of this process; a back end whose kernels cannot reach
// that memory copies before and after each run. Start with LoadBackend; cpu_backend.cc is the one to read first.
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

// Used by one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  // From now on the input `tensor` is read from `host` (the output is written there): memory of the tensor's size that
  // starts on a multiple of kTensorAlignment; null if the tensor has no bytes. Called for every input and output before
  // the first Run. Whoever owns the memory may write it between runs without saying so.
  virtual void PlacePort(uint32_t tensor, uint8_t* host) = 0;

  // The same for memory of a device, which stays the caller's: `memory` is of the tensor's size, and aligned to its
  // elements alone. False where the back end takes no memory of that device; then nothing is changed.
  virtual bool PlaceOnDevice(uint32_t /*tensor*/, DLDevice /*device*/, void* /*memory*/) { return false; }
  // The device whose memory it takes, for people; empty if there is none.
  virtual std::string DeviceTaken() const { return ""; }

  // Runs all calls in their order, then the copies; when it returns, all outputs are in their places.
  // nanoseconds: empty, or one per call for the time it took.
  virtual Fault Run(std::span<int64_t> nanoseconds) = 0;

  // Threads of this process that compute; `threads` as in HoneLoadOptions. A device does not care: 1.
  virtual void SetThreads(int threads) = 0;
  virtual int threads() const = 0;
};

// Makes a program ready to run. Incompatible says why this machine cannot run it; other errors are of the one attempt.
// program and constants outlive the back end. On success *backend holds it.
using LoadFunction = Fault(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                           std::unique_ptr<Backend>* backend);
using BackendLoader = std::function<LoadFunction>;

// The loader for every kind of code: leaves the work to the back end of that kind (backends.h).
Fault LoadBackend(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                  std::unique_ptr<Backend>* backend);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_BACKEND_H_
