// SPDX-License-Identifier: Apache-2.0
// The last accesses to each element: how the interpreter finds races between lanes.
//
// Two accesses to one element race if they are by different lanes, one of them writes, and no barrier of their group
// lies between them. Accesses by different groups always race if one writes. While a lane copies to an element, no
// access to it is allowed until that lane has waited. Not thread-safe.
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
  // Sets the lane that makes the following accesses.
  void Enter(int64_t group, int64_t lane) {
    group_ = group;
    lane_ = lane;
  }
  // Records a barrier of the current group.
  void Synchronize() { ++epoch_; }
  // Drops all accesses to the buffer, whose memory was allocated anew.
  void Forget(const BufferNode* buffer) { cells_.erase(buffer); }

  // Record an access. Return "" or a description of the race. offset: in elements. Local buffers never race.
  std::string Read(const BufferNode* buffer, int64_t offset);
  std::string Write(const BufferNode* buffer, int64_t offset);
  // Records the start of an asynchronous copy to the element. It counts as written at EndCopy.
  std::string BeginCopy(const BufferNode* buffer, int64_t offset);
  void EndCopy(const BufferNode* buffer, int64_t offset);

 private:
  struct Access {
    int64_t group = -1, lane = -1, epoch = -1;  // group -1: no access yet
    bool other_lanes = false;                   // other lanes of the group accessed it as well since the last barrier
    bool groups = false;                        // other groups accessed it as well
    bool in_flight = false;                     // an asynchronous copy in flight
  };
  struct Cell {
    Access write, read;
  };
  Cell& At(const BufferNode* buffer, int64_t offset);
  bool IsUnordered(const Access& other) const;
  std::string RecordWrite(const BufferNode* buffer, int64_t offset, const char* what);
  std::string DescribeInFlight(const BufferNode* buffer, int64_t offset, const char* what, const Access& copy) const;
  std::string Describe(const BufferNode* buffer, int64_t offset, const char* what, const Access& other,
                       const char* did) const;

  std::unordered_map<const BufferNode*, std::vector<Cell>> cells_;
  int64_t group_ = 0, lane_ = 0, epoch_ = 0;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_RACE_LOG_H_
