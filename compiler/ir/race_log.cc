// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/race_log.h"

#include "fmt/format.h"

namespace hone::ir {

RaceLog::Cell& RaceLog::At(const BufferNode* buffer, int64_t offset) {
  std::vector<Cell>& cells = cells_[buffer];
  if (cells.empty()) cells.resize(static_cast<size_t>(NumElements(*buffer)));
  return cells[static_cast<size_t>(offset)];
}

// Whether the current lane's access and `other` have no defined order.
bool RaceLog::IsUnordered(const Access& other) const {
  if (other.group < 0) return false;
  if (other.group != group_ || other.groups) return true;
  return other.epoch == epoch_ && (other.other_lanes || other.lane != lane_);
}

std::string RaceLog::DescribeInFlight(const BufferNode* buffer, int64_t offset, const char* what,
                                      const Access& copy) const {
  return fmt::format(
      "lane {} of group {} {} element {} of '{}', to which lane {} is still copying; wait for the copy first ('wait')",
      lane_, group_, what, offset, buffer->name, copy.lane);
}

std::string RaceLog::Describe(const BufferNode* buffer, int64_t offset, const char* what, const Access& other,
                              const char* did) const {
  return fmt::format("race on element {} of '{}': lane {} of group {} {} what lane {} of group {} {}", offset,
                     buffer->name, lane_, group_, what, other.lane, other.group,
                     other.group == group_ ? fmt::format("{} since the last barrier", did) : did);
}

std::string RaceLog::Read(const BufferNode* buffer, int64_t offset) {
  if (buffer->scope == Scope::kLocal) return "";
  Cell& cell = At(buffer, offset);
  if (cell.write.in_flight) return DescribeInFlight(buffer, offset, "reads", cell.write);
  if (IsUnordered(cell.write)) return Describe(buffer, offset, "reads", cell.write, "wrote");
  const bool groups = cell.read.groups || (cell.read.group >= 0 && cell.read.group != group_);
  const bool same_time = cell.read.group == group_ && cell.read.epoch == epoch_;
  const bool other_lanes = same_time && (cell.read.other_lanes || cell.read.lane != lane_);
  cell.read = {group_, lane_, epoch_, other_lanes, groups};
  return "";
}

std::string RaceLog::Write(const BufferNode* buffer, int64_t offset) {
  return buffer->scope == Scope::kLocal ? "" : RecordWrite(buffer, offset, "writes");
}

std::string RaceLog::BeginCopy(const BufferNode* buffer, int64_t offset) {
  std::string raced = RecordWrite(buffer, offset, "copies to");
  At(buffer, offset).write.in_flight = true;
  return raced;
}

void RaceLog::EndCopy(const BufferNode* buffer, int64_t offset) {
  At(buffer, offset).write = {group_, lane_, epoch_, false};
}

std::string RaceLog::RecordWrite(const BufferNode* buffer, int64_t offset, const char* what) {
  Cell& cell = At(buffer, offset);
  if (cell.write.in_flight) return DescribeInFlight(buffer, offset, what, cell.write);
  if (IsUnordered(cell.write)) return Describe(buffer, offset, what, cell.write, "wrote");
  if (IsUnordered(cell.read)) return Describe(buffer, offset, what, cell.read, "read");
  cell.write = {group_, lane_, epoch_, false};
  return "";
}

}  // namespace hone::ir
