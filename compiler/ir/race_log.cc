#include "compiler/ir/race_log.h"

#include "fmt/format.h"

namespace hone::ir {

RaceLog::Cell& RaceLog::At(const BufferNode* buffer, int64_t offset) {
  std::vector<Cell>& cells = cells_[buffer];
  if (cells.empty()) cells.resize(static_cast<size_t>(NumElements(*buffer)));
  return cells[static_cast<size_t>(offset)];
}

// Whether this lane's access may happen before, after or during the other one.
bool RaceLog::Apart(const Access& other) const {
  if (other.group < 0) return false;
  if (other.group != group_ || other.groups) return true;
  return other.epoch == epoch_ && (other.several || other.lane != lane_);
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
  if (Apart(cell.write)) return Describe(buffer, offset, "reads", cell.write, "wrote");
  const bool groups = cell.read.groups || (cell.read.group >= 0 && cell.read.group != group_);
  const bool same_time = cell.read.group == group_ && cell.read.epoch == epoch_;
  const bool several = same_time && (cell.read.several || cell.read.lane != lane_);
  cell.read = {group_, lane_, epoch_, several, groups};
  return "";
}

std::string RaceLog::Write(const BufferNode* buffer, int64_t offset) {
  if (buffer->scope == Scope::kLocal) return "";
  Cell& cell = At(buffer, offset);
  if (Apart(cell.write)) return Describe(buffer, offset, "writes", cell.write, "wrote");
  if (Apart(cell.read)) return Describe(buffer, offset, "writes", cell.read, "read");
  cell.write = {group_, lane_, epoch_, false};
  return "";
}

}  // namespace hone::ir
