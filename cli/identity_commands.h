// SPDX-License-Identifier: Apache-2.0
// The commands for the certificates and members of a farm: `hone pki`, `join`, `token`, `identity`, `audit`.
#ifndef HONE_CLI_IDENTITY_COMMANDS_H_
#define HONE_CLI_IDENTITY_COMMANDS_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

void AddIdentityCommands(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_IDENTITY_COMMANDS_H_
