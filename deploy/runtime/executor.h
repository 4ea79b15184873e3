// SPDX-License-Identifier: Apache-2.0
// The executor runs a program: it owns the back end of every home, makes the copies over the borders between them, and
// does the actions between calls.
//
// A run is a list of parts, made once when the program is loaded: actions, then the borders before a segment, then the
// segment. A program with one home and no actions is one part. Parts follow each other unless an action jumps. The
// executor allocates nothing while it runs. It is part of the model (model.h), which places inputs and outputs. Start
// with Load and Run.
#ifndef HONE_DEPLOY_RUNTIME_EXECUTOR_H_
#define HONE_DEPLOY_RUNTIME_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/backend.h"
#include "deploy/runtime/memory.h"

namespace hone::runtime {

// As a Backend, one thread at a time may use it.
class Executor {
 public:
  // Loads the back end of every home. `program` and `constants` must outlive the executor. Errors are the loader's;
  // with several homes, the text names the target of the home's first unit.
  Fault Load(const ProgramView& program, std::span<const uint8_t> constants, const BackendOptions& options,
             const BackendLoader& loader);

  // The sizes of the next run. Shapes and kernels use the values at the time of the run.
  SizeValues& sizes() { return *sizes_; }
  const SizeValues& sizes() const { return *sizes_; }

  // As the functions of Backend, for all homes that use the port. PlaceOnDevice also returns false if several homes use
  // it, because the memory of a device is in reach of one.
  void SetPortMemory(uint32_t tensor, uint8_t* host);
  bool PlaceOnDevice(uint32_t tensor, DLDevice device, void* memory);
  // The name of the device whose memory the port takes, for error texts; empty if it takes none.
  std::string DeviceTaken(uint32_t tensor) const;

  // Runs the program and returns when all outputs are written. nanoseconds: empty, or one element per call, which
  // receives its time; then border_nanoseconds() are written, too.
  Fault Run(std::span<int64_t> nanoseconds);
  // The same, one call after the other. watch: called after each call, for each tensor that the call wrote and that
  // holds a value of the model's file (ProgramView::values). data: the tensor's memory if it is in this process, else a
  // copy; null if it has no bytes.
  using Watch = std::function<void(uint32_t call, uint32_t tensor, uint8_t* data)>;
  Fault RunWatched(const Watch& watch);
  // Per border of the program: its time in the last run with times, by this machine's clock; 0 before.
  std::span<const int64_t> border_nanoseconds() const { return border_nanoseconds_; }

  void SetThreads(int threads);
  int threads() const;  // the most of any back end
  // The threads of the first back end that has some, for BackendOptions::pool; else null.
  std::shared_ptr<ThreadPool> Pool() const;
  // Uses the threads of another program's executor, which never runs at the same time.
  void ShareThreads(const Executor& other);

 private:
  struct Part {
    uint32_t home = 0;
    uint32_t first_action = 0, end_action = 0;  // the actions [first, end) of the program come first
    uint32_t first_border = 0, end_border = 0;  // the borders [first, end) of the program come before the segment
    Segment segment;
  };

  void MakeParts();
  // Appends parts without calls: for actions after the last call, and for homes that end without one.
  void CompleteParts(std::vector<uint32_t>& segments, uint32_t border);
  Fault AllocateStaging();
  // watch: null to run whole segments. After an error or an exception, RunOrWait waits for all back ends.
  Fault RunOrWait(std::span<int64_t> nanoseconds, const Watch* watch);
  void WaitForAll();
  Fault RunParts(std::span<int64_t> nanoseconds, const Watch* watch);
  Fault WatchSegment(const Part& part, const Watch& watch);
  Fault Show(uint32_t call, const Watch& watch);
  Fault Cross(const package::BorderEntry& border);
  // Does the actions of the part, and those to which they jump. *part is then the part whose segment comes next.
  Fault DoActions(uint32_t* part);
  Fault Do(const package::ActionEntry& action);
  Fault CopyRow(const package::ActionEntry& action);
  // Copies the first bytes of `source` to `target`, from its byte `offset` on. Their homes may differ.
  Fault CopyBytes(uint32_t source, uint32_t target, uint64_t offset, uint64_t bytes);
  bool CrossesDevices(const package::ActionEntry& copy) const;  // whether both sides are in memory of devices
  Fault ReadElement(uint32_t tensor, int64_t* value);           // of a tensor with one element
  // Whether a home uses an input or output, and the only home that does; empty if several do.
  bool Uses(uint32_t home, uint32_t port) const;
  std::optional<uint32_t> OnlyHomeOf(uint32_t port) const;

  const ProgramView* program_ = nullptr;
  std::unique_ptr<SizeValues> sizes_;
  std::vector<std::unique_ptr<Backend>> backends_;  // per home; refer to sizes_
  std::vector<Part> parts_;
  std::vector<uint32_t> part_of_action_;  // per action of the program
  Mapping staging_;                       // for copies from one device to another; as large as the largest of them
  std::vector<int64_t> border_nanoseconds_;
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_EXECUTOR_H_
