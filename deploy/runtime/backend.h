// SPDX-License-Identifier: Apache-2.0
// A back end computes the part of a program that works in one home, a memory space (package_format.h): the only
// interface between a model and the hardware that computes it.
//
// A back end owns the code of the home's units, the home's arena, and the constants if it needs its own copy of them.
// The model (model.h) owns the file and the memory of inputs and outputs, which is in this process. A back end whose
// kernels cannot reach that memory copies before and after each run. The executor (executor.h) makes the back ends of a
// program and tells them what to run when. Not a check of the package: program_view.h has done it. Start with
// LoadBackend, and with cpu_backend.cc as the simplest back end.
#ifndef HONE_DEPLOY_RUNTIME_BACKEND_H_
#define HONE_DEPLOY_RUNTIME_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/hone_dlpack.h"
#include "deploy/runtime/program_view.h"
#include "deploy/runtime/size_values.h"

namespace hone {
class ThreadPool;
}

namespace hone::runtime {

// Consecutive calls of one home in a run. A program with one home has one segment.
struct Segment {
  uint32_t number = 0;          // among the segments of the home, from 0
  uint32_t first = 0, end = 0;  // the calls [first, end) of the program
  bool begins = false;          // the home's first segment of a run: its inputs are handed over before the calls
  bool ends = false;            // the home's last one: after the calls come its copies, and its outputs are handed back
};

// One thread at a time may use it. Tensors are indices into ProgramView::tensors.
class Backend {
 public:
  virtual ~Backend() = default;

  // From the next run on, reads the input `tensor` from `host`, or writes the output `tensor` to it. The memory is not
  // owned, has the tensor's size and starts on a multiple of kTensorAlignment; it is null if the tensor has no bytes.
  // The executor calls this for every input and output of the home before the first run. The contents may change
  // between runs without another call.
  virtual void SetPortMemory(uint32_t tensor, uint8_t* host) = 0;

  // SetPortMemory for memory of a device. `memory` is not owned, has the tensor's size and is aligned to its elements
  // only. Returns false, and changes nothing, if the back end does not take memory of that device.
  virtual bool PlaceOnDevice(uint32_t /*tensor*/, DLDevice /*device*/, void* /*memory*/) { return false; }
  // The name of the device whose memory PlaceOnDevice takes, for error texts; empty if it takes none.
  virtual std::string DeviceTaken() const { return ""; }

  // Where the program's sizes are, if it has open ones. Called once, before the first run; `sizes` must outlive the
  // back end, and its values change between runs. Incompatible if the back end cannot take open sizes. A run reads and
  // writes ports at their current shapes.
  virtual Fault SetSizes(const SizeValues& sizes) = 0;

  // Runs a segment. If it ends, returns when all outputs of the home are written to their places; else the work may
  // still be running. nanoseconds: empty, or one element per call of the program; the time
  // of each call of the segment is added to its element.
  virtual Fault Run(const Segment& segment, std::span<int64_t> nanoseconds) = 0;
  // Waits for the work of all segments that were run.
  virtual Fault Wait() = 0;

  // The memory of an intermediate or output of the home if it is in this process, else null. With Read and Write, the
  // way of a tensor over a border.
  virtual uint8_t* HostMemory(uint32_t tensor) = 0;
  // Copies the tensor's bytes from the home to `host`, after the work that was run, or from `host` to the home, and
  // waits until that is done. Only for tensors without HostMemory.
  virtual Fault Read(uint32_t tensor, uint8_t* host) = 0;
  virtual Fault Write(uint32_t tensor, const uint8_t* host) = 0;

  // For the actions of a run. They come after all work that was run before.
  // Copies the first `bytes` bytes of `source` to `target`, from its byte `offset` on.
  virtual Fault CopyBytes(uint32_t source, uint32_t target, uint64_t offset, uint64_t bytes) = 0;
  // Copies the first bytes of the tensor to `to`, and waits until that is done.
  virtual Fault ReadBytes(uint32_t tensor, std::span<uint8_t> to) = 0;
  // Copies the bytes to the tensor, from its byte `offset` on, and waits until that is done. Only for tensors without
  // HostMemory.
  virtual Fault WriteBytes(uint32_t tensor, uint64_t offset, std::span<const uint8_t> from) = 0;
  // Exchanges the memory of two intermediates of one size.
  virtual Fault SwapMemory(uint32_t a, uint32_t b) = 0;

  // The threads of this process that compute; `threads` is as in HoneLoadOptions. A back end of a device ignores
  // SetThreads, and its threads() is 1.
  virtual void SetThreads(int threads) = 0;
  virtual int threads() const = 0;
  // The threads themselves, so that back ends of several programs, which never run at the same time, share them. Null
  // and ignored by a back end of a device.
  virtual std::shared_ptr<ThreadPool> Pool() const { return nullptr; }
  virtual void SharePool(const std::shared_ptr<ThreadPool>& /*pool*/) {}
};

// What the caller of hone_load chooses for back ends.
struct BackendOptions {
  int threads = 0;                   // as in HoneLoadOptions
  bool allows_onnx_runtime = false;  // whether its library may be loaded, as HONE_LOAD_ALLOW_ONNX_RUNTIME says
  std::string device;                // as in HoneLoadOptions; empty: no restriction
  std::shared_ptr<ThreadPool> pool;  // those of Backend::Pool to use instead of new threads; null: new ones
};

// The selector of a device of the allowed kind (drivers/choose_device.h): that of options.device, else `named`, which
// the package gives.
std::string_view DeviceSelector(const BackendOptions& options, std::string_view named);

// Makes the units of a home ready to run. Incompatible: this machine cannot run them, and the text says why.
// BadPackage: the package is damaged. Every other error is about this attempt only. The model tries the package's next
// program after every error except BadPackage. The back end refers to `program` and `constants`: both must outlive it.
// *backend is set on success only.
using LoadFunction = Fault(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                           const BackendOptions& options, std::unique_ptr<Backend>* backend);
using BackendLoader = std::function<LoadFunction>;

// The loader for all kinds of code: calls the loader of the home's kind (backends.h). BadPackage: the kind is unknown.
// Incompatible: this runtime was built without the driver for it, or options.device excludes it.
Fault LoadBackend(const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                  const BackendOptions& options, std::unique_ptr<Backend>* backend);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_BACKEND_H_
