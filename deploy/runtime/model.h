// SPDX-License-Identifier: Apache-2.0
// A Model is a loaded package: the mapped file, the programs that were chosen from it, and their inputs and outputs.
//
// The programs are those of one target. They take different shapes, share the memory of inputs and outputs and the
// threads, and number inputs and outputs alike. The first that takes the current shapes is the current program.
// The executor (executor.h) runs the program. The C interface (hone.h) wraps this class and states the rules for
// callers; this class checks them and words the errors. Start with Load, then Run.
#ifndef HONE_DEPLOY_RUNTIME_MODEL_H_
#define HONE_DEPLOY_RUNTIME_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/backend.h"
#include "deploy/runtime/executor.h"
#include "deploy/runtime/fault.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"
#include "deploy/runtime/size_values.h"

namespace hone::runtime {

class Model {
 public:
  // Maps the package and takes the programs of the first target for which `loader` can load the one with the largest
  // shapes. Any error of the loader passes a target over, except BadPackage, which is returned at once. If no target is
  // left, the error has the reason for each. *model is set on success only.
  static Fault Load(const std::string& path, const BackendOptions& options, ConstantsCheck check,
                    std::unique_ptr<Model>* model, const BackendLoader& loader = LoadBackend);
  // The same for a package that is mapped already.
  static Fault Load(Mapping file, const BackendOptions& options, ConstantsCheck check, std::unique_ptr<Model>* model,
                    const BackendLoader& loader = LoadBackend);

  const ProgramView& program() const { return *program_; }  // the current program
  size_t program_number() const;                            // of the current program in the package
  std::string_view metadata() const { return package_.metadata; }
  // Why the programs before it could not be loaded, one line for each; empty if it is the first.
  const std::string& passed_over() const { return passed_over_; }

  // `index` counts inputs or outputs from 0; InvalidArgument if there is no such one. The functions below are those of
  // hone.h with the same names.
  Fault InputPort(size_t index, HonePort* port) const;
  Fault OutputPort(size_t index, HonePort* port) const;
  bool InputHasDefault(size_t index) const;   // false if there is no such input
  int64_t UpdatedInput(size_t output) const;  // -1 if there is none
  // OK if the model has these ports, with these largest shapes. InvalidArgument names the first difference.
  Fault CheckPorts(std::span<const HonePort> inputs, std::span<const HonePort> outputs) const;
  // The smallest and largest extents of an input; `room` extents are written to each.
  Fault InputRange(size_t index, int64_t* min, int64_t* max, size_t room) const;
  // OK if these are the extents that InputRange gives. InvalidArgument says what differs.
  Fault CheckInputRange(size_t index, std::span<const int64_t> min, std::span<const int64_t> max) const;
  Fault Resize(size_t index, std::span<const int64_t> shape);
  Fault SetInput(size_t index, const DLTensor& tensor);
  Fault InputView(size_t index, DLTensor* view);
  // A null tensor ends the binding: the port uses the model's own memory again.
  Fault BindInput(size_t index, const DLTensor* tensor);
  Fault BindOutput(size_t index, const DLTensor* tensor);
  Fault OutputView(size_t index, DLTensor* view) const;

  Fault Prepare() { return CheckReadyToRun(); }
  Fault Run();
  // nanoseconds: one element per call of the program, which receives the call's time. Sets the times of borders, too.
  Fault RunProfiled(std::span<int64_t> nanoseconds);
  Fault RunWatched(HoneWatch watch, void* context);
  // InvalidArgument if there is no such border.
  Fault Border(size_t index, HoneBorder* border) const;

  Fault SetThreads(int threads);
  int threads() const { return executor().threads(); }

 private:
  // A program of the chosen target.
  struct Alternative {
    explicit Alternative(const ProgramView& view) : program(&view), range(view) {}

    const ProgramView* program;
    SizeValues range;                    // for questions about the shapes that it takes
    std::unique_ptr<Executor> executor;  // loaded when the program is used first; null before
  };

  Model() = default;
  Fault LoadPrograms();
  // Sets alternatives_ to the programs of the target, in the order in which they are preferred.
  void Collect(std::string_view target);
  Fault LoadExecutor(Alternative& alternative, const BackendOptions& options);
  // Makes it the current program; loads it at its first use.
  Fault Use(Alternative& alternative);
  // The first program that takes the current shapes; null if none does.
  Alternative* FindProgram();
  // The fault if FindProgram is null: lists what the programs take.
  Fault NoProgramTakesShapes() const;
  Executor& executor() { return *current_->executor; }
  const Executor& executor() const { return *current_->executor; }
  Fault AllocatePorts();
  // Fills the model's own buffers of the inputs with a default value. They count as set.
  void SetDefaults();
  // Places an input or output in memory of this process. SetPortAddress only records the place.
  void SetPortMemory(uint32_t tensor, uint8_t* address);
  void SetPortAddress(uint32_t tensor, DLDevice device, uint8_t* address);
  Fault Bind(uint32_t tensor, const DLTensor* given);
  // The error for a tensor in memory of a device that the program does not take.
  Fault WrongPlace(uint32_t tensor, DLDevice device) const;
  // The model's own buffer of an input or output; null if it has no bytes.
  uint8_t* OwnAddress(uint32_t tensor) const;
  bool IsBound(uint32_t tensor) const { return addresses_[tensor] != OwnAddress(tensor); }
  Fault CheckPorts(std::span<const HonePort> wanted, std::span<const uint32_t> ids, const char* what) const;
  Fault CheckIndex(size_t index, std::span<const uint32_t> ids, const char* what) const;
  Fault CheckTensor(uint32_t tensor, const DLTensor& given) const;
  Fault CheckBindable(uint32_t tensor, const DLTensor& given) const;
  HonePort PortOf(uint32_t tensor) const;
  DLTensor ViewOf(uint32_t tensor) const;
  // The shape of the next run's inputs, and of the last run's outputs.
  std::span<const int64_t> ShapeOfPort(uint32_t tensor) const;
  uint64_t BytesOfPort(uint32_t tensor) const;
  // The position of an input or output in the program's list.
  static size_t PositionOf(uint32_t port, std::span<const uint32_t> ids);
  // The least and the most that a caller may give for a port's dimension.
  int64_t LeastExtent(uint32_t tensor, size_t dimension) const;
  int64_t MostExtent(uint32_t tensor, size_t dimension) const;
  bool FitsShape(uint32_t tensor, std::span<const int64_t> shape) const;
  std::string RangeText(uint32_t tensor) const;  // "[1..8, 3]": from LeastExtent to MostExtent
  // The same for the input as one program takes it.
  static std::string RangeText(const Alternative& alternative, uint32_t input);
  // The fault of a shape that does not fit. what: the start of its text.
  Fault WrongShape(uint32_t tensor, std::span<const int64_t> shape, const std::string& what) const;
  void SetShape(size_t index, std::span<const int64_t> shape);  // of an input; the shape must fit
  // Whether the output and the input are in one place, and the program updates the one to the other in place.
  bool IsUpdatedInPlace(uint32_t output, uint32_t input) const;
  Fault CheckDisjoint(uint32_t output, uint32_t other) const;
  Fault CheckReadyToRun();
  // Runs the program. Its actions may change the shapes of outputs.
  Fault RunExecutor(std::span<int64_t> nanoseconds, const Executor::Watch& watch = {});
  void SetOutputShapes();

  Mapping file_;
  PackageView package_;     // points into file_
  BackendOptions options_;  // as given to Load
  BackendLoader loader_;
  std::vector<Alternative> alternatives_;  // refer to package_; at least one, in the order in which they are preferred
  Alternative* current_ = nullptr;
  const ProgramView* program_ = nullptr;  // of current_
  std::string passed_over_;
  Mapping io_;                         // the model's own buffers of inputs and outputs
  std::vector<uint64_t> own_offsets_;  // per tensor: the place of an input or output in io_
  std::vector<uint64_t> own_bytes_;    // per tensor: the most that any program needs for an input or output
  std::vector<uint8_t*> addresses_;    // per tensor: the place of an input or output; null for other tensors
  std::vector<DLDevice> devices_;      // per tensor: the device of addresses_
  bool known_disjoint_ = false;        // CheckReadyToRun has found no overlap, and no address has changed since
  std::vector<bool> input_set_;        // per input: whether the caller has set the model's own buffer
  std::vector<std::vector<int64_t>> input_shapes_;   // per input: its current shape
  std::vector<std::vector<int64_t>> output_shapes_;  // per output: its shape in the last run
  bool sizes_are_set_ = false;                       // the current program's sizes are those of input_shapes_
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_MODEL_H_
