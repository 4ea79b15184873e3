// SPDX-License-Identifier: Apache-2.0
// SizeValues: the values of a program's open sizes for the inputs of the next run, and all that follows from them.
//
// The sizes come from the shapes of the inputs, and from actions of the run. Shapes of other tensors and the sizes that
// kernels take follow by the steps of the manifest (package_format.h). A program without open sizes has fixed values.
// No call allocates memory, unless it fails. Not here: memory, which is laid out for the largest sizes.
#ifndef HONE_DEPLOY_RUNTIME_SIZE_VALUES_H_
#define HONE_DEPLOY_RUNTIME_SIZE_VALUES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/program_view.h"

namespace hone::runtime {

std::string ShapeText(std::span<const int64_t> shape);  // "[3, 12]"

class SizeValues {
 public:
  // Every open size has its largest value. The program must outlive this.
  explicit SizeValues(const ProgramView& program);

  bool IsOpen() const { return !program_.sizes.empty(); }
  // Sets the open sizes from the inputs' shapes, one per input of the program, and computes everything else.
  // InvalidArgument, with all values as before, if two inputs contradict each other or a size is out of range.
  Fault Set(std::span<const std::vector<int64_t>> input_shapes);
  // Sets a size that actions of the run set. InvalidArgument if it is out of its range.
  Fault SetSize(uint32_t size, int64_t value);
  // A value by its number (package_format.h): first come the open sizes, then the steps of the manifest.
  int64_t Value(uint32_t number) const { return values_[number]; }

  // How often the values were computed. A reader that keeps what follows from them compares this number.
  uint64_t version() const { return version_; }
  // Whether Set would succeed. Allocates nothing; the values stay as they are.
  bool Takes(std::span<const std::vector<int64_t>> input_shapes);

  // The current extents of a tensor, and the bytes of a compact tensor of that shape.
  std::span<const int64_t> Shape(uint32_t tensor) const;
  uint64_t Bytes(uint32_t tensor) const;
  // The smallest and the largest extent of a dimension of an input, whose extents only grow with the sizes.
  int64_t MinExtent(uint32_t tensor, size_t dimension) const;
  int64_t MaxExtent(uint32_t tensor, size_t dimension) const;
  // What kernels of CPUs read: ProgramView::size_arguments by value. The address never changes.
  const int64_t* arguments() const { return arguments_.data(); }

 private:
  void Compute();
  // Whether actions of the run set the size.
  bool IsFromRun(size_t size) const { return program_.sizes[size].tensor == package::kNoTensor; }
  // Exchanges the values of the open sizes with those in given_.
  void ExchangeGiven();

  const ProgramView& program_;
  uint64_t version_ = 0;
  std::vector<int64_t> values_;        // of the open sizes, then of the steps
  std::vector<int64_t> given_;         // scratch of Set: new values of the open sizes
  std::vector<int64_t> least_shapes_;  // per entry of ProgramView::shapes: its value at the smallest sizes
  std::vector<int64_t> shapes_;        // per entry of ProgramView::shapes: its current value
  std::vector<int64_t> arguments_;     // per entry of ProgramView::size_arguments
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_SIZE_VALUES_H_
