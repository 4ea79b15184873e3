// SPDX-License-Identifier: Apache-2.0
// The failure that a child's end means, in words. The texts of a child are untrusted.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_CHILD_BLAME_H_
#define HONE_DEVICE_AGENT_LAUNCHER_CHILD_BLAME_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "device_agent/launcher/child_process.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/message.h"

namespace hone::agent {

// Replaces all but printable ASCII, so that a text from a child is valid in a proto string.
std::string Clean(std::string_view text);
std::string Clean(const char* text, size_t capacity);  // up to a zero byte

VisitFailure ForbiddenCallFailure(const std::string& name);
// The failure that a message of the kind kFault reports.
VisitFailure FailureForFault(const VisitMessage& fault);
// The failure of a child that has ended by itself. Call it once, and only after ChildProcess::Event::kEnded.
VisitFailure FailureForEnd(ChildProcess& child);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_CHILD_BLAME_H_
