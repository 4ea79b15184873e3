// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace hone::cli {

int FinishCommand(const absl::Status& status) {
  if (status.ok()) return kSuccess;
  PrintMessage(fmt::format("hone: {}\n", std::string(status.message())));
  if (status.GetPayload(kMissingMark).has_value()) return kRecordsMissing;
  if (status.GetPayload(kSlowerMark).has_value()) return kSlower;
  if (status.GetPayload(kDifferentMark).has_value()) return kDifferent;
  return status.GetPayload(kUsageMark).has_value() ? kWrongUsage : kWorkFailed;
}

}  // namespace hone::cli
