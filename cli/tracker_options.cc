// SPDX-License-Identifier: Apache-2.0
#include "cli/tracker_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

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

void TrackerOptions::AddTo(CLI::App* command, Need need, std::vector<const std::string*> others) {
  const char* none = need == Need::kRequired ? ", else the tracker of the farm that was joined" : "";
  command
      ->add_option("--tracker", address,
                   fmt::format("tracker of the farm, HOST:PORT or unix:/PATH (default: HONE_TRACKER{})", none))
      ->check(NotEmpty);
  // CLI11's own reading of variables would take one as given, and --records FILE excludes --tracker.
  command->parse_complete_callback([this, others = std::move(others)] {
    const char* variable = std::getenv("HONE_TRACKER");
    if (given() || variable == nullptr) return;
    if (std::ranges::all_of(others, [](const std::string* other) { return other->empty(); })) address = variable;
  });
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
