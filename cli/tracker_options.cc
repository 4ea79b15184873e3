// SPDX-License-Identifier: Apache-2.0
#include "cli/tracker_options.h"

#include <fmt/format.h>

#include <mutex>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "pki/farm_link.h"
#include "pki/identity_folder.h"
#include "transport/transport.h"

namespace hone::cli {
namespace {

// Prints the warning once in a process, however often a command connects.
void Warn(const std::string& text) {
  static std::once_flag warned;
  std::call_once(warned, [&] { PrintMessage(fmt::format("warning: {}\n", text)); });
}

}  // namespace

void TrackerOptions::AddTo(CLI::App* command, bool is_required) {
  required = is_required;
  CLI::Option* option =
      command->add_option("--tracker", address, "tracker of the farm, HOST:PORT or unix:/PATH")->check(NotEmpty);
  // The variable is read only if the command needs a tracker: it must not redirect a local `hone tune` to the farm.
  if (required) {
    option->envname("HONE_TRACKER");
    option->description(option->get_description() + " (default: the tracker of the farm that was joined)");
  }
  command->add_option("--identity", identity, "folder with your certificate (default: ~/.config/hone/user)")
      ->envname("HONE_IDENTITY")
      ->check(NotEmpty);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> TrackerOptions::Connect() {
  if (SocketPath(address)) return OpenChannel(address, {});
  if (identity.empty()) {
    HONE_ASSIGN_OR_RETURN(identity, pki::DefaultFolder(Role::kClient));
  }
  if (!given()) {
    HONE_ASSIGN_OR_RETURN(const pki::Settings settings, pki::ReadSettings(identity));
    address = settings.tracker;
  }
  if (!given()) return UsageError("no tracker is given; give --tracker HOST:PORT, or join a farm: hone join");
  if (const auto host = HostOf(address); !host.ok()) {
    return UsageError(fmt::format("tracker {}; or unix:/PATH", std::string(host.status().message())));
  }
  HONE_ASSIGN_OR_RETURN(const std::string warning, pki::CheckCertificateIn(identity, absl::Now()));
  if (!warning.empty()) Warn(warning);
  return OpenChannel(address, pki::FilesIn(identity));
}

}  // namespace hone::cli
