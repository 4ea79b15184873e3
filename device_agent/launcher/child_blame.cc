// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/child_blame.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include "device_agent/sandbox/system_calls.h"
#include "device_agent/visit/guarded_memory.h"

namespace hone::agent {

std::string Clean(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return clean;
}

std::string Clean(const char* text, size_t capacity) { return Clean(std::string_view(text, strnlen(text, capacity))); }

VisitFailure ForbiddenCallFailure(const std::string& name) {
  return {FailureKind::kForbiddenCall, fmt::format("made the system call {}, which is forbidden", name)};
}

VisitFailure FailureForFault(const VisitMessage& fault) {
  const std::string name = Clean(fault.text, sizeof(fault.text));
  const auto place = static_cast<Place>(fault.place);
  const std::string signal = SignalName(fault.signal);
  if (fault.signal == SIGSYS) return ForbiddenCallFailure(SystemCallName(static_cast<int>(fault.calls)));
  if (name.empty()) return {FailureKind::kCrashed, fmt::format("crashed with {}", signal)};
  const std::string where = place == Place::kBefore  ? fmt::format("{} bytes before {}", fault.distance, name)
                            : place == Place::kAfter ? fmt::format("{} bytes past the end of {}", fault.distance, name)
                                                     : fmt::format("at byte {} of {}", fault.distance, name);
  if (fault.is_write == 0) return {FailureKind::kCrashed, fmt::format("crashed with {}: read {}", signal, where)};
  if (place == Place::kInside)
    return {FailureKind::kWrongOutput, fmt::format("wrote into a read-only buffer: {}", where)};
  return {FailureKind::kOutOfBoundsWrite, fmt::format("wrote {}", where)};
}

VisitFailure FailureForEnd(ChildProcess& child) {
  const std::string text = fmt::format("the process {}", child.AwaitEnd());
  if (!child.killed_by_system()) return {FailureKind::kCrashed, text};
  return {FailureKind::kLostDevice, text + ", by the system, probably because memory was short"};
}

}  // namespace hone::agent
