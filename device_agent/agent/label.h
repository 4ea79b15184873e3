// SPDX-License-Identifier: Apache-2.0
// A label of a device, as `hone-agent --label` takes it and jobs ask for it (hone/v1/agent.proto).
#ifndef HONE_DEVICE_AGENT_AGENT_LABEL_H_
#define HONE_DEVICE_AGENT_AGENT_LABEL_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::agent {

struct Label {
  std::string name;
  std::string value;  // empty where a name alone was given
};

// "rpi4" or "room=lab". kInvalidArgument: with a character that `hone submit --device` would read as something else.
absl::StatusOr<Label> ParseLabel(const std::string& text);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_LABEL_H_
