// SPDX-License-Identifier: Apache-2.0
// Runs PTX on the CPU: Parse turns text into kernels, Run launches one of them.
//
// It knows the instructions that LLVM prints for kernels of Hone; any other is an error that names it. Run executes one
// cluster after the other, and each lane until it comes to an instruction that lanes run together. Asynchronous copies
// and wgmma are executed as late as they may be, so that a missing wait is found.
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

// Memory of this process that kernels may access.
struct Memory {
  uint64_t begin = 0, bytes = 0;
};

struct Program {
  std::vector<Kernel> kernels;
  std::vector<std::unique_ptr<std::vector<std::byte>>> tables;  // .global and .const of the text
  std::vector<Memory> table_memory;                             // their addresses

  const Kernel* Find(std::string_view name) const;
};

// wanted: whether the kernel of that name is decoded; of others only the name is read. Unimplemented: an unknown
// instruction. InvalidArgument: malformed text. Both errors give the line.
absl::StatusOr<Program> Parse(
    std::string_view text, const std::function<bool(std::string_view)>& wanted = [](std::string_view) { return true; });

struct Launch {
  uint32_t groups = 1, lanes = 1;
  uint64_t shared_bytes = 0;  // that it requests, beside the kernel's own
  std::vector<uint64_t> arguments;
  std::vector<Memory> memory;  // sorted by address; includes the program's tables
  // Each entry of memory is one buffer: a buffer that ld.global.nc reads must not be written.
  bool memory_is_buffers = false;
};

// OutOfRange: an address outside of the launch's memory. DataLoss: an unaligned access. FailedPrecondition: lanes do
// not come together, race, or a wait is missing. InvalidArgument: the launch does not fit the kernel. Each error gives
// the place.
absl::Status Run(const Kernel& kernel, const Launch& launch);

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_PROGRAM_H_
