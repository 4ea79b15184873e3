// SPDX-License-Identifier: Apache-2.0
#include "pki/identity_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/folder_path.h"
#include "base/home_folder.h"
#include "base/private_folder.h"
#include "base/read_file.h"
#include "base/status.h"
#include "base/write_all.h"

namespace hone::pki {
namespace {

constexpr std::string_view kTracker = "tracker ", kLabel = "label ";

const char* FolderName(Role role) {
  if (role == Role::kAgent) return "agent";
  return role == Role::kTuner ? "tuner" : "user";
}

absl::Status CannotWrite(const std::filesystem::path& path) {
  return absl::UnavailableError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::filesystem::path> DefaultFolder(Role role) {
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME"); xdg != nullptr && *xdg == '/') {
    return std::filesystem::path(xdg) / "hone" / FolderName(role);
  }
  const std::filesystem::path home = HomeFolder();
  if (home.is_absolute()) return home / ".config" / "hone" / FolderName(role);
  return absl::FailedPreconditionError("this account has no home folder; give --identity DIR");
}

TlsFiles FilesIn(const std::filesystem::path& folder) { return {folder / "identity.pem", folder / "authority.pem"}; }

absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path parent = FolderPath(std::filesystem::absolute(folder, error)).parent_path();
  std::filesystem::create_directories(parent, error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::UnavailableError(fmt::format("cannot make {}: {}", folder.string(), std::strerror(errno)));
  }
  return CheckPrivateFolder(folder);
}

absl::Status WriteFile(const std::filesystem::path& path, std::string_view text) {
  const std::string temporary = path.string() + ".new";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return CannotWrite(temporary);
  const bool written = WriteAll(file, text) && fsync(file) == 0;
  close(file);
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) return CannotWrite(path);
  const int folder = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  absl::StatusOr<std::string> text = ReadWholeFile(path.string());
  if (text.ok()) return text;
  const std::string what = fmt::format("cannot read {}: {}", path.string(), std::string(text.status().message()));
  return std::filesystem::exists(path) ? absl::UnavailableError(what) : absl::NotFoundError(what);
}

absl::Status WriteSettings(const std::filesystem::path& folder, const Settings& settings) {
  std::string text = fmt::format("{}{}\n", kTracker, settings.tracker);
  for (const std::string& label : settings.labels) text += fmt::format("{}{}\n", kLabel, label);
  return WriteFile(folder / "settings", text);
}

absl::StatusOr<Settings> ReadSettings(const std::filesystem::path& folder) {
  const auto text = ReadFile(folder / "settings");
  if (absl::IsNotFound(text.status())) return Settings();
  if (!text.ok()) return text.status();
  Settings settings;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kTracker)) {
      settings.tracker = line.substr(kTracker.size());
    } else if (line.starts_with(kLabel)) {
      settings.labels.push_back(line.substr(kLabel.size()));
    } else if (!line.empty()) {
      return absl::InvalidArgumentError(fmt::format("{}: line '{}' is neither 'tracker HOST:PORT' nor 'label LABEL'",
                                                    (folder / "settings").string(), line));
    }
  }
  return settings;
}

absl::StatusOr<FarmIdentity> ReadIdentity(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "identity.pem";
  if (!std::filesystem::exists(file)) {
    return absl::NotFoundError(fmt::format(
        "there is no certificate in {}: join a farm first (hone-agent join, or hone join), or name the folder that has "
        "one with --identity DIR",
        folder.string()));
  }
  HONE_RETURN_IF_ERROR(CheckPrivateFolder(folder));
  HONE_ASSIGN_OR_RETURN(const std::string pem, ReadFile(file));
  const auto facts = ReadCertificate(pem);
  if (!facts.ok()) return Annotate(facts.status(), file.string());
  auto identity = IdentityFromUris(facts->uris);
  if (identity.ok()) return identity;
  return absl::InvalidArgumentError(fmt::format("{}: {}", file.string(), std::string(identity.status().message())));
}

absl::StatusOr<std::string> ReadName(const std::filesystem::path& folder, Role role) {
  HONE_ASSIGN_OR_RETURN(FarmIdentity identity, ReadIdentity(folder));
  if (identity.role == role) return std::move(identity.name);
  return absl::InvalidArgumentError(fmt::format("the certificate in {} is for role {}; role {} is needed here",
                                                folder.string(), Name(identity.role), Name(role)));
}

}  // namespace hone::pki
