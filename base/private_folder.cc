// SPDX-License-Identifier: Apache-2.0
#include "base/private_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace hone {
namespace {

constexpr mode_t kOthers = 077;       // any access by the group or by other users
constexpr mode_t kOthersWrite = 022;  // write access by the group or by other users

absl::Status CannotLook(const std::filesystem::path& path) {
  const std::string text = fmt::format("cannot examine {}: {}", path.string(), std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(text) : absl::PermissionDeniedError(text);
}

}  // namespace

absl::Status CheckPrivateFolder(const std::filesystem::path& folder) {
  struct stat own{}, parent{};
  if (lstat(folder.c_str(), &own) != 0) return CannotLook(folder);
  if (!S_ISDIR(own.st_mode)) return absl::PermissionDeniedError(fmt::format("{} is not a folder", folder.string()));
  if (own.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        fmt::format("{} belongs to user {}, but this program runs as user {}", folder.string(), own.st_uid, geteuid()));
  }
  if ((own.st_mode & kOthers) != 0) {
    // chmod is suggested only for a folder that is clearly the user's own: closing a shared one, such as /tmp or
    // /var/lib, would break other programs.
    const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal().relative_path();
    const auto depth = std::distance(whole.begin(), whole.end());
    const bool among_own =
        depth == 2 && (*whole.begin() == "tmp" || *whole.begin() == "home" || *whole.begin() == "root");
    const bool closable = (depth > 2 || among_own) && (own.st_mode & S_ISVTX) == 0;
    return absl::PermissionDeniedError(fmt::format("other users can enter {}; {}", folder.string(),
                                                   closable ? "close it with: chmod 700 " + folder.string()
                                                            : "use a separate folder, made with: mkdir -m 700 FOLDER"));
  }
  const std::filesystem::path above = folder / "..";
  if (stat(above.c_str(), &parent) != 0) return CannotLook(above);
  if ((parent.st_mode & kOthersWrite) != 0 && (parent.st_mode & S_ISVTX) == 0) {
    return absl::PermissionDeniedError(
        fmt::format("other users can replace {}, because they may write to the folder that contains it; close that "
                    "folder with: chmod go-w {}",
                    folder.string(), above.lexically_normal().string()));
  }
  return absl::OkStatus();
}

}  // namespace hone
