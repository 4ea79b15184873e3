// SPDX-License-Identifier: Apache-2.0
#include "tracker/package_sweeper.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/farm_identity.h"

namespace hone::tracker {
namespace {

constexpr std::chrono::seconds kSweepPeriod(1);

// A client or an agent that has shown to have the file may still name it.
bool IsTuner(const std::string& holder) {
  const absl::StatusOr<FarmIdentity> identity = IdentityFromUris({holder});
  return identity.ok() && identity->role == Role::kTuner;
}

}  // namespace

void SweepPackages(Shell& shell, files::FileStore& store) {
  const std::vector<std::string> unneeded = shell.TakeUnneededPackages();
  if (!unneeded.empty()) store.DeleteUnlessHeld(unneeded, IsTuner);
}

PackageSweeper::PackageSweeper(Shell* shell, files::FileStore* store)
    : thread_([shell, store](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
          SweepPackages(*shell, *store);
          stopped.wait_for(lock, stop, kSweepPeriod, [] { return false; });
        }
      }) {}

}  // namespace hone::tracker
