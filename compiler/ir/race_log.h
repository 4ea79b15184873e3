// SPDX-License-Identifier: Apache-2.0
// Which lane touched which element since the last barrier: how the interpreter finds lanes that race.
//
// Two accesses to one element race if one of them writes, different lanes make them, and no barrier of their group lies
// between; lanes of different groups never have a barrier between them. An element that a lane is copying to is
// nobody's until that lane has waited for it. Not thread-safe.
#ifndef HONE_COMPILER_IR_RACE_LOG_H_
#define HONE_COMPILER_IR_RACE_LOG_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::ir {

class RaceLog {
 public:
  // Whatever runs next is run by this lane of this group.
  void Enter(int64_t group, int64_t lane) {
    group_ = group;
    lane_ = lane;
  }
  // All lanes of the group have met.
  void Synchronize() { ++epoch_; }
  // The buffer's memory is new.
  void Forget(const BufferNode* buffer) { cells_.erase(buffer); }

  // "" or what raced. `offset` counts elements. Local buffers belong to one lane and never race.
  std::string Read(const BufferNode* buffer, int64_t offset);
  std::string Write(const BufferNode* buffer, int64_t offset);
  // The lane begins to copy to the element; it is written when the copy ends.
  std::string BeginCopy(const BufferNode* buffer, int64_t offset);
  void EndCopy(const BufferNode* buffer, int64_t offset);

 private:
  struct Access {
    int64_t group = -1, lane = -1, epoch = -1;  // group -1: none yet
    bool several = false;                       // other lanes of the group too, since the last barrier
    bool groups = false;                        // other groups too
    bool under_way = false;                     // a copy that has not ended
  };
  struct Cell {
    Access write, read;
  };
  Cell& At(const BufferNode* buffer, int64_t offset);
  bool Apart(const Access& other) const;
  std::string Change(const BufferNode* buffer, int64_t offset, const char* what);
  std::string UnderWay(const BufferNode* buffer, int64_t offset, const char* what, const Access& copy) const;
  std::string Describe(const BufferNode* buffer, int64_t offset, const char* what, const Access& other,
                       const char* did) const;

  std::unordered_map<const BufferNode*, std::vector<Cell>> cells_;
  int64_t group_ = 0, lane_ = 0, epoch_ = 0;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_RACE_LOG_H_
