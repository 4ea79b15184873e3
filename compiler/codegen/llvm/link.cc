// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "compiler/codegen/backend.h"

LLD_HAS_DRIVER(elf)

namespace hone::codegen {
namespace {

// A file in memory. The linker takes paths, and /proc/self/fd/N is one.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {}
  MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return fd_ >= 0; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

 private:
  int fd_;
};

// lld writes its result beside the output path and renames it, so the output needs a real folder; in memory if
// possible.
absl::StatusOr<TemporaryFolder> OutputFolder() {
  for (const char* parent : {"/dev/shm", "/tmp", "."}) {
    if (absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Create(parent); folder.ok()) return folder;
  }
  return absl::UnavailableError("linking needs a writable folder, but /dev/shm, /tmp and . are not writable");
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return absl::InternalError(fmt::format("cannot read the linked object {}: {}", path, std::strerror(errno)));
  std::string bytes;
  char block[1 << 16];
  ssize_t n = 0;
  while ((n = read(fd, block, sizeof block)) > 0) bytes.append(block, static_cast<size_t>(n));
  close(fd);
  if (n < 0) return absl::InternalError("cannot read the linked object: " + std::string(std::strerror(errno)));
  return bytes;
}

}  // namespace

absl::StatusOr<Artifact> LinkShared(std::span<const std::string> objects) {
  std::vector<MemoryFile> inputs;
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder folder, OutputFolder());
  const std::string output = folder / "out.so";
  std::vector<std::string> words = {"ld.lld", "-shared", "-O0", "--threads=1", "--build-id=none",
                                    "-z",     "relro",   "-o",  output};
  for (const std::string& object : objects) {
    inputs.emplace_back("hone-object");
    if (!inputs.back().ok() || !inputs.back().Write(object)) {
      return absl::ResourceExhaustedError("cannot hold an object in memory for linking: " +
                                          std::string(std::strerror(errno)));
    }
    words.push_back(inputs.back().path());
  }
  std::vector<const char*> args;
  for (const std::string& word : words) args.push_back(word.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) return absl::InternalError("linking failed: " + messages);
  if (!result.canRunAgain)
    return absl::InternalError("the linker failed and cannot run again in this process: " + messages);
  Artifact artifact;
  HONE_ASSIGN_OR_RETURN(artifact.code, ReadFile(output));
  artifact.ranges.resize(objects.size());
  return artifact;
}

}  // namespace hone::codegen
