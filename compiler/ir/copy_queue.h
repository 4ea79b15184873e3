// SPDX-License-Identifier: Apache-2.0
// What one lane has begun to copy and not waited for, in the interpreter: elements arrive at the wait and not before.
//
// The race log knows that they are under way, so that whoever uses them meanwhile is reported. Not here: where a copy
// goes (eval_copy.h). Not thread-safe.
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
  // `count` elements, by their places in the buffers. The memory outlives the copy.
  struct Entry {
    const BufferNode* buffer = nullptr;
    std::byte* to = nullptr;  // the first element
    int64_t to_offset = 0;
    const BufferNode* source = nullptr;
    const std::byte* from = nullptr;  // null: zeros arrive
    int64_t from_offset = 0;
    int64_t count = 0;
    bool of_group = false;
    std::vector<std::byte> seen = {};  // the source's bytes when the copy began
  };

  // Until it arrives, NaNs stand in the place, or indices that are out of every bounds.
  void Begin(Entry entry);
  // "", or that so many bundles are under way that copies of the group cannot be told apart.
  std::string Commit();
  // All but the last `pending` bundles arrive. "", or what raced, or which source changed meanwhile. races: may be
  // null.
  std::string Wait(int64_t pending, RaceLog* races);
  // Whether a copy to the buffer is under way.
  bool Fills(const BufferNode* buffer) const;

 private:
  static std::string Arrive(const Entry& entry, RaceLog* races);

  std::vector<Entry> open_;
  std::deque<std::vector<Entry>> bundles_;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_COPY_QUEUE_H_
