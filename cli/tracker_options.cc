#include "cli/tracker_options.h"

#include <fmt/format.h>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "pki/identity_folder.h"
#include "transport/transport.h"

namespace hone::cli {

void TrackerOptions::AddTo(CLI::App* command, bool is_required) {
  required = is_required;
  CLI::Option* option = command->add_option("--tracker", address, "tracker of the farm, HOST:PORT or unix:/PATH");
  // Only where nothing else is meant: a variable must not turn a local `hone tune` into one of the farm.
  if (required) {
    option->envname("HONE_TRACKER");
    option->description(option->get_description() + " (default: the one that was joined)");
  }
  command->add_option("--identity", identity, "folder with your certificate (default: ~/.config/hone/user)")
      ->envname("HONE_IDENTITY");
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
  if (!given()) return UsageError("which tracker? give --tracker HOST:PORT, or join a farm: hone join");
  if (const auto host = HostOf(address); !host.ok()) {
    return UsageError(fmt::format("tracker {}; or unix:/PATH", std::string(host.status().message())));
  }
  HONE_RETURN_IF_ERROR(pki::IdentityIn(identity).status());
  return OpenChannel(address, pki::FilesIn(identity));
}

}  // namespace hone::cli
