// SPDX-License-Identifier: Apache-2.0
// A label of a device: `hone-agent --label` gives it, and jobs select devices by it (hone/v1/agent.proto).
#ifndef HONE_DEVICE_AGENT_AGENT_LABEL_H_
#define HONE_DEVICE_AGENT_AGENT_LABEL_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::agent {

struct Label {
  std::string name;
  std::string value;  // empty for a label that is only a name
};

// Parses "rpi4" or "room=lab". kInvalidArgument: it has a character that `hone submit --device` reads as syntax.
absl::StatusOr<Label> ParseLabel(const std::string& text);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_LABEL_H_
