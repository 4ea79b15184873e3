// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's C library, for parts of a model that Hone cannot compile: a Session computes one ONNX model on the
// CPU, in memory of the caller.
//
// Nothing of ONNX Runtime is needed to build Hone. The library is loaded when the first session is made, and stays
// loaded. Not here: who may load it (deploy/runtime/backend.h). Start with Session::Open.
#ifndef HONE_DRIVERS_ONNX_RUNTIME_H_
#define HONE_DRIVERS_ONNX_RUNTIME_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drivers/error.h"

namespace hone::drivers::onnx_runtime {

// The environment variable with the path of the library. It is not read in a program that runs with more rights than
// its user (setuid).
inline constexpr char kLibraryVariable[] = "HONE_ONNX_RUNTIME";
// The variable's value; null if it is empty or not set.
const char* NamedLibrary();

// A tensor in memory of the caller.
struct Tensor {
  int element_type = 0;  // the number that ONNX gives the type (TensorProto.DataType)
  std::span<const int64_t> shape;
  void* data = nullptr;  // not owned; of an input it is only read; may be null if there are no bytes
  uint64_t bytes = 0;    // the shape's
};

struct Library;  // the loaded library

// Empty until Open. One thread at a time may use it. Moved from, it is empty.
class Session {
 public:
  Session() = default;
  Session(Session&& other) noexcept { *this = std::move(other); }
  Session& operator=(Session&& other) noexcept;
  ~Session();

  // Makes `model`, the bytes of an ONNX file, ready to run with so many threads, the caller's among them. They do not
  // spin while they wait, and signals to the process do not reach them. The library is NamedLibrary, or else the one
  // that the linker finds as libonnxruntime.so.1 or libonnxruntime.so. *session is set on success only. kAbsent: no
  // library, or none that has the functions. kProgram: the library refuses the model.
  static Error Open(std::span<const uint8_t> model, int threads, Session* session);

  // The numbers of the model's inputs and outputs.
  size_t inputs() const { return input_names_.size(); }
  size_t outputs() const { return output_names_.size(); }

  // Computes the outputs, in the order of the model. There must be one tensor for each input and output. kProgram: the
  // library refuses the inputs, or an output has another shape or type than its tensor.
  Error Run(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const;

  // Whether this process made the session. The session's threads do not exist in a process that was forked from it, so
  // that it must not be run there; it is not released there either.
  bool IsOfThisProcess() const;

 private:
  Error ReadNames(bool of_inputs, std::vector<std::string>* names) const;

  std::shared_ptr<const Library> library_;
  void* session_ = nullptr;  // OrtSession, owned
  pid_t process_ = 0;        // that made it
  std::vector<std::string> input_names_, output_names_;
};

}  // namespace hone::drivers::onnx_runtime

#endif  // HONE_DRIVERS_ONNX_RUNTIME_H_
