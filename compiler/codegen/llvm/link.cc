// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/memory_file.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "compiler/codegen/backend.h"

LLD_HAS_DRIVER(elf)

namespace hone::codegen {
namespace {

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
  std::vector<MemoryFile> inputs;  // the linker reads them by path
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder folder, OutputFolder());
  const std::string output = folder / "out.so";
  std::vector<std::string> words = {"ld.lld", "-shared", "-O0", "--threads=1", "--build-id=none",
                                    "-z",     "relro",   "-o",  output};
  for (const std::string& object : objects) {
    HONE_ASSIGN_OR_RETURN(MemoryFile input, MemoryFile::Holding("hone-object", object));
    words.push_back(input.path());
    inputs.push_back(std::move(input));
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
