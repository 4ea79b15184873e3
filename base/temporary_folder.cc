#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hone {

namespace fs = std::filesystem;

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create(const fs::path& parent) {
  std::error_code error;
  const fs::path where = fs::canonical(parent.empty() ? fs::temp_directory_path(error) : parent, error);
  std::string name = (where / "hone-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return absl::UnavailableError(fmt::format("cannot make a folder in {}: {}", (error ? parent : where).string(),
                                              error ? error.message() : std::strerror(errno)));
  }
  return TemporaryFolder(name);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nothing to be done about it here
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace hone
