// SPDX-License-Identifier: Apache-2.0
// KernelSizes: the open sizes that the kernels of a home take, laid out for one buffer in the memory of a device.
//
// Calls that take the same sizes share a place. Update fills the buffer's contents in this process; the back end copies
// them to the device. Not here: the values themselves (size_values.h). The constructor allocates; Update does not.
#ifndef HONE_DEPLOY_RUNTIME_KERNEL_SIZES_H_
#define HONE_DEPLOY_RUNTIME_KERNEL_SIZES_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "deploy/runtime/program_view.h"
#include "deploy/runtime/size_values.h"

namespace hone::runtime {

class KernelSizes {
 public:
  // The program must outlive this.
  KernelSizes(const ProgramView& program, uint32_t home);

  // The contents of the buffer; empty if no kernel of the home takes sizes.
  std::span<const int64_t> contents() const { return contents_; }
  // Where the sizes of a call's kernel begin, in bytes. Only for calls of the home whose kernel takes sizes.
  uint64_t OffsetOf(const package::CallEntry& call) const;

  // Whether the values are other ones than at the last Update, or there was none. False for a program without open
  // sizes.
  bool AreOld(const SizeValues& values) const { return values.IsOpen() && values.version() != version_; }
  void Update(const SizeValues& values);

 private:
  // The numbers of the values that the call's kernel takes as sizes; empty if it takes none.
  std::span<const uint32_t> NumbersOf(const package::CallEntry& call) const;

  const ProgramView& program_;
  std::map<std::vector<uint32_t>, size_t> places_;  // per list of numbers: index of its first element in contents_
  std::vector<int64_t> contents_;
  uint64_t version_ = 0;  // of the values in contents_; 0: none
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_KERNEL_SIZES_H_
