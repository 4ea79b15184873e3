// SPDX-License-Identifier: Apache-2.0
// A loaded package: the mapped file, the program that was taken from it, and the inputs and outputs.
//
// The back end (backend.h) runs the program. The C interface (hone.h) is a thin shell around this class and documents
// what callers may do; the errors are worded here. Start with Load, then Run.
#ifndef HONE_DEPLOY_RUNTIME_MODEL_H_
#define HONE_DEPLOY_RUNTIME_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/backend.h"
#include "deploy/runtime/fault.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"

namespace hone::runtime {

class Model {
 public:
  // Takes the first program that `loader` can load. threads as in HoneLoadOptions. If there is none, the error says for
  // each program why not. On success *model holds the model.
  static Fault Load(const std::string& path, int threads, ConstantsCheck check, std::unique_ptr<Model>* model,
                    const BackendLoader& loader = LoadBackend);

  const ProgramView& program() const { return *program_; }  // the one that runs
  std::string_view metadata() const { return package_.metadata; }
  // Why the programs before it were passed over, a line for each; empty if it is the first.
  const std::string& passed_over() const { return passed_over_; }

  // `index` counts inputs (outputs); a bad one is InvalidArgument.
  Fault InputPort(size_t index, HonePort* port) const;
  Fault OutputPort(size_t index, HonePort* port) const;
  // InvalidArgument names the first that differs.
  Fault CheckPorts(std::span<const HonePort> inputs, std::span<const HonePort> outputs) const;
  Fault SetInput(size_t index, const DLTensor& tensor);
  Fault InputView(size_t index, DLTensor* view);
  // A null tensor: the model's own memory again.
  Fault BindInput(size_t index, const DLTensor* tensor);
  Fault BindOutput(size_t index, const DLTensor* tensor);
  Fault OutputView(size_t index, DLTensor* view) const;

  Fault Run();
  // nanoseconds: one per call.
  Fault RunProfiled(std::span<int64_t> nanoseconds);

  Fault SetThreads(int threads);
  int threads() const { return backend_->threads(); }

 private:
  Model() = default;
  Fault LoadProgram(int threads, const BackendLoader& loader);
  void PlacePort(uint32_t tensor, uint8_t* address);
  void NotePlace(uint32_t tensor, DLDevice device, uint8_t* address);
  Fault Bind(uint32_t tensor, const DLTensor* given);
  Fault WrongPlace(uint32_t tensor, DLDevice device) const;
  uint8_t* OwnAddress(uint32_t tensor) const;  // of an input or output: the model's own buffer
  bool IsBound(uint32_t tensor) const { return addresses_[tensor] != OwnAddress(tensor); }
  Fault CheckPorts(std::span<const HonePort> wanted, std::span<const uint32_t> ids, const char* what) const;
  Fault CheckIndex(size_t index, std::span<const uint32_t> ids, const char* what) const;
  Fault CheckTensor(uint32_t tensor, const DLTensor& given) const;
  Fault CheckBindable(uint32_t tensor, const DLTensor& given) const;
  HonePort PortOf(uint32_t tensor) const;
  DLTensor ViewOf(uint32_t tensor) const;
  Fault CheckApart(uint32_t output, uint32_t other) const;
  Fault CheckReady();

  Mapping file_;
  PackageView package_;  // points into file_
  const ProgramView* program_ = nullptr;
  std::string passed_over_;
  Mapping io_;
  std::vector<uint8_t*> addresses_;   // per tensor; of inputs and outputs, else null
  std::vector<DLDevice> devices_;     // whose memory that is
  bool known_apart_ = false;          // whether no output overlaps what it must not
  std::vector<bool> input_set_;       // per input: whether the model's own buffer was
  std::unique_ptr<Backend> backend_;  // reads package_
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_MODEL_H_
