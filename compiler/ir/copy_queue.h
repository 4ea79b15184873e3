// SPDX-License-Identifier: Apache-2.0
// The asynchronous copies of one lane that are in flight in the interpreter. Elements arrive at the wait, not before.
//
// The race log is told which elements are in flight, so that it can report their use. Not here: the addresses of a copy
// (eval_copy.h). Not thread-safe.
#ifndef HONE_COMPILER_IR_COPY_QUEUE_H_
#define HONE_COMPILER_IR_COPY_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "compiler/ir/race_log.h"

namespace hone::ir {

class CopyQueue {
 public:
  // A copy of `count` elements. Offsets count elements from the start of the buffer. The memory must outlive the copy.
  struct Entry {
    const BufferNode* buffer = nullptr;
    std::byte* to = nullptr;  // destination of the first element
    int64_t to_offset = 0;
    const BufferNode* source = nullptr;
    const std::byte* from = nullptr;  // null: zeros are written
    int64_t from_offset = 0;
    int64_t count = 0;
    bool is_bulk = false;
    std::vector<std::byte> seen =
        {};  // the source's bytes at the start of the copy; a change until the wait is an error
  };

  // Starts a copy. Until it arrives the destination holds NaNs, or indices that are out of every bound.
  void Begin(Entry entry);
  // Ends a commit group. Returns "", or an error if there are bulk copies and more than the allowed commit groups.
  std::string Commit();
  // Completes all commit groups but the last `pending`. Returns "", or what raced, or which source changed while it was
  // copied. races: may be null.
  std::string Wait(int64_t pending, RaceLog* races);
  // Whether a copy to the buffer is in flight.
  bool HasCopyInFlightTo(const BufferNode* buffer) const;

 private:
  static std::string CompleteCopy(const Entry& entry, RaceLog* races);

  std::vector<Entry> open_;
  std::deque<std::vector<Entry>> commit_groups_;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_COPY_QUEUE_H_
