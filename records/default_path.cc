#include "records/default_path.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace hone::records {
namespace {

std::filesystem::path Home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return found->pw_dir;
}

}  // namespace

absl::StatusOr<std::filesystem::path> DefaultRecordsPath() {
  if (const char* xdg = std::getenv("XDG_DATA_HOME"); xdg != nullptr && *xdg == '/') {
    return std::filesystem::path(xdg) / "hone" / "records.db";
  }
  std::filesystem::path home = Home();
  if (!home.is_absolute()) {
    return absl::FailedPreconditionError("no home folder is known for this account; pass --records FILE");
  }
  return home / ".local" / "share" / "hone" / "records.db";
}

}  // namespace hone::records
