// SPDX-License-Identifier: Apache-2.0
// Places the buffers that the lanes of a group share. Private to codegen/.
//
// The back end for CUDA emits the places, and the interface of the kernel tells the launch how many bytes to request.
#ifndef HONE_COMPILER_CODEGEN_SHARED_MEMORY_H_
#define HONE_COMPILER_CODEGEN_SHARED_MEMORY_H_

#include <cstdint>
#include <map>

#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace hone::codegen {

struct SharedMemory {
  // The bytes that the launch must request. They hold all shared buffers of the func. 0: the buffers fit into what
  // every launch has, and each is a variable of its own.
  int64_t requested_bytes = 0;
  std::map<const ir::BufferNode*, int64_t> places;  // byte offsets in the requested memory; empty if none is requested
  int64_t mbarriers_offset = 0;                     // byte offset of the mbarriers of bulk copies there
};

// The alignment of a shared buffer, in bytes.
int64_t SharedAlignment(const ir::BufferNode& buffer);
// Buffers never overlap, because no barrier separates the last reader of one from the first writer of another.
SharedMemory PlaceShared(const ir::Func& func, const target::Memory& memory);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_SHARED_MEMORY_H_
