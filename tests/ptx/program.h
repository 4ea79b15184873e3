// SPDX-License-Identifier: Apache-2.0
// PTX that runs on the CPU: text in, kernels out, and a launch of one of them.
//
// What LLVM prints for our kernels is known, and what is not known is an error that names it. Parse decodes every
// instruction once; Run then has the groups one after the other, and of a group each lane until it comes to something
// that lanes do together. Everything that a device does later than it is asked to, copies and wgmma, is done as late as
// it may be, so that a wait that is missing is found.
#ifndef HONE_TESTS_PTX_PROGRAM_H_
#define HONE_TESTS_PTX_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptx/instruction.h"

namespace hone::ptx {

// Bytes of this process that kernels may reach.
struct Memory {
  uint64_t begin = 0, bytes = 0;
};

struct Program {
  std::vector<Kernel> kernels;
  std::vector<std::unique_ptr<std::vector<std::byte>>> tables;  // .global and .const of the text
  std::vector<Memory> table_memory;                             // where they are

  const Kernel* Find(std::string_view name) const;
};

// wanted: of which entries more than the name is read. Unimplemented: an instruction is not known. InvalidArgument: the
// text is not what it should be. Both say the line.
absl::StatusOr<Program> Parse(
    std::string_view text, const std::function<bool(std::string_view)>& wanted = [](std::string_view) { return true; });

struct Launch {
  uint32_t groups = 1, lanes = 1;
  uint64_t shared_bytes = 0;  // that it asks for
  std::vector<uint64_t> arguments;
  std::vector<Memory> memory;  // sorted; of the program's tables, too
  // Each piece of memory is one buffer: none is written that ld.global.nc reads.
  bool memory_is_buffers = false;
};

// OutOfRange: an address that nobody has. DataLoss: an access that is not aligned. FailedPrecondition: lanes do not
// come together, or something was not waited for. InvalidArgument: the launch does not fit the kernel. Each says where.
absl::Status Run(const Kernel& kernel, const Launch& launch);

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_PROGRAM_H_
