// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/outbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "base/read_file.h"
#include "base/status.h"
#include "base/write_all.h"

namespace hone::agent {
namespace {

constexpr char kEnding[] = ".result";
constexpr char kFreshEnding[] = ".new";  // of an incomplete file

absl::Status DiskError(const std::filesystem::path& path, const char* what) {
  return absl::UnavailableError(fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

// Writes a file; its bytes and its name are on the disk when this returns OK.
absl::Status WriteDurably(const std::filesystem::path& path, const std::string& bytes) {
  const std::filesystem::path fresh = path.string() + kFreshEnding;
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return DiskError(fresh, "write");
  const bool durable = WriteAll(fd, bytes) && fsync(fd) == 0;
  const absl::Status failed = durable ? absl::OkStatus() : DiskError(fresh, "write");
  close(fd);
  if (!durable) {
    unlink(fresh.c_str());
    return failed;
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) {
    const absl::Status unnamed = DiskError(fresh, "rename");
    unlink(fresh.c_str());
    return unnamed;
  }
  const int folder = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return DiskError(path.parent_path(), "open");
  const absl::Status synced = fsync(folder) == 0 ? absl::OkStatus() : DiskError(path.parent_path(), "write");
  close(folder);
  return synced;
}

bool IsName(const std::string& id) {
  return !id.empty() && id.size() <= 64 &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return isalnum(c); });
}

}  // namespace

absl::StatusOr<Outbox> Outbox::Open(std::filesystem::path folder, Limits limits) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || chmod(folder.c_str(), 0700) != 0) {
    return absl::UnavailableError(fmt::format("cannot make folder {} for results that wait for the tracker: {}",
                                              folder.string(), error ? error.message() : std::strerror(errno)));
  }
  // Incomplete files come from an agent that was killed while it wrote.
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == kFreshEnding) unlink(entry.path().c_str());
  }
  return Outbox(std::move(folder), limits);
}

std::map<std::string, v1::LeaseResult> Outbox::Read() const {
  std::map<std::string, v1::LeaseResult> results;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kEnding) continue;
    const absl::StatusOr<std::string> bytes = ReadWholeFile(entry.path().string());
    v1::LeaseResult result;
    if (bytes.ok() && result.ParseFromString(*bytes) && result.lease().lease_id() == entry.path().stem()) {
      results[result.lease().lease_id()] = std::move(result);
      continue;
    }
    spdlog::error("{} is not a result of this agent; it is ignored", entry.path().string());
    std::filesystem::rename(entry.path(), entry.path().string() + ".broken", error);
  }
  return results;
}

absl::Status Outbox::StoreResult(const v1::LeaseResult& result) {
  const std::string& id = result.lease().lease_id();
  if (!IsName(id)) return absl::InvalidArgumentError(fmt::format("lease id '{}' cannot be a file name", id));
  const std::string bytes = result.SerializeAsString();
  const std::filesystem::file_time_type newest = EvictOldest(static_cast<int64_t>(bytes.size()));
  const std::filesystem::path path = folder_ / (id + kEnding);
  HONE_RETURN_IF_ERROR(WriteDurably(path, bytes));
  // Files of one tick of the system's clock have equal times, so the order in which they were kept is set explicitly.
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (!error && written <= newest) {
    std::filesystem::last_write_time(path, newest + std::chrono::microseconds(1), error);
  }
  return absl::OkStatus();
}

void Outbox::Forget(const std::string& lease_id) {
  if (IsName(lease_id)) unlink((folder_ / (lease_id + kEnding)).c_str());
}

// Removes the oldest results, whose tracker has been away longest.
std::filesystem::file_time_type Outbox::EvictOldest(int64_t bytes) const {
  std::vector<std::tuple<std::filesystem::file_time_type, int64_t, std::filesystem::path>> files;
  int64_t sum = bytes;
  auto newest = std::filesystem::file_time_type::min();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const auto size = static_cast<int64_t>(entry.file_size(error));
    files.emplace_back(entry.last_write_time(error), size, entry.path());
    newest = std::max(newest, std::get<0>(files.back()));
    sum += size;
  }
  if (files.size() < limits_.results && sum <= limits_.bytes) return newest;
  std::sort(files.begin(), files.end());
  size_t left = files.size() + 1;
  for (const auto& [time, size, path] : files) {
    if (left <= limits_.results && sum <= limits_.bytes) break;
    spdlog::error("too many results wait for the tracker; the oldest, {}, is dropped", path.string());
    std::filesystem::remove(path, error);
    sum -= size;
    left -= 1;
  }
  return newest;
}

}  // namespace hone::agent
