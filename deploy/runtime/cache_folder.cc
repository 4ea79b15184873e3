// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

namespace hone::runtime {

std::filesystem::path CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && cache[0] == '/') {
    folder = cache;
  } else if (home != nullptr && home[0] == '/') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  folder /= "hone";
  mkdir(folder.c_str(), 0700);
  struct stat status;
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return {};
  return status.st_uid == geteuid() && (status.st_mode & 022) == 0 ? folder : std::filesystem::path();
}

}  // namespace hone::runtime
