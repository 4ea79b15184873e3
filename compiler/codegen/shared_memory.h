// SPDX-License-Identifier: Apache-2.0
// Where the buffers lie that the lanes of a group share. Private to codegen/: the emitter places them, and the
// interface of the kernel asks for what a launch does not have by itself.
#ifndef HONE_COMPILER_CODEGEN_SHARED_MEMORY_H_
#define HONE_COMPILER_CODEGEN_SHARED_MEMORY_H_

#include <cstdint>
#include <map>

#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace hone::codegen {

struct SharedMemory {
  // Bytes that the launch must ask for, which then hold all of the func's buffers; 0: it has enough, and every buffer
  // is one of its own.
  int64_t asked_bytes = 0;
  std::map<const ir::BufferNode*, int64_t> places;  // from the beginning of these, if there are any
  int64_t bundles = 0;                              // where what tells of copies of the group is, likewise
};

// On a multiple of so many bytes it begins.
int64_t SharedAlignment(const ir::BufferNode& buffer);
// None lies where another does: nobody waits between the last reader of one and the first writer of another.
SharedMemory PlaceShared(const ir::Func& func, const target::Memory& memory);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_SHARED_MEMORY_H_
