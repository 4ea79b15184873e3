// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/code_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/resource_limit.h"

namespace hone::runtime {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__arm__)
constexpr uint16_t kMachine = EM_ARM;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif

#if __SIZEOF_POINTER__ == 8
using ElfHeader = Elf64_Ehdr;
constexpr unsigned char kElfClass = ELFCLASS64;
#else
using ElfHeader = Elf32_Ehdr;
constexpr unsigned char kElfClass = ELFCLASS32;
#endif

Fault CheckElf(std::span<const uint8_t> elf) {
  ElfHeader header;
  if (elf.size() < sizeof header || std::memcmp(elf.data(), ELFMAG, SELFMAG) != 0) {
    return BadPackage("its code is not an ELF file");
  }
  std::memcpy(&header, elf.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != kElfClass || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN) {
    return BadPackage("its code is not a shared object for this machine");
  }
  if (header.e_machine != kMachine) {
    return BadPackage("its code is for ELF machine " + std::to_string(header.e_machine) + ", this one is " +
                      std::to_string(kMachine));
  }
  return {};
}

// Makes the functions of libm visible to kernels, and on 32-bit Arm those of libgcc, which do 64-bit divisions and
// conversions. Kernels call them but name no library, so the linker looks in the global scope of the process. A program
// that loaded this runtime with RTLD_LOCAL does not have the libraries there. If there is no library of that name, the
// functions are in the C library itself.
void ShowLibraries() {
  [[maybe_unused]] static void* const math = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
#if defined(__arm__)
  [[maybe_unused]] static void* const helpers = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL);
#endif
}

// The limit on file sizes also holds for files in memory. It is checked before writing, because the system answers a
// write beyond the limit with a signal (SIGXFSZ).
Fault CheckFileLimit(size_t bytes) {
  const uint64_t most = FileBytesMax();
  if (bytes <= most) return {};
  return IoError("the package's code is to be placed in a file of " + std::to_string(bytes) +
                 " bytes, this process may write no more than " + std::to_string(most) +
                 "; raise its limit (ulimit -f, LimitFSIZE= of systemd)");
}

Fault SystemError(const std::string& what) { return IoError(what + ": " + std::strerror(errno)); }

Fault WriteAll(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot write the package's code");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

// A path to `fd` that no other loaded object has. The dynamic linker returns the old object if it has loaded one under
// the same path. Descriptor numbers are reused, but two mapped files never have the same inode number. Therefore the
// path encodes the number: each of its bits is "./" or "/", and neither changes the file to which the path leads.
std::string UniquePath(int fd, ino_t inode) {
  std::string path = "/proc/self/fd/";
  for (; inode != 0; inode /= 2) path += inode % 2 != 0 ? "./" : "/";
  return path + std::to_string(fd);
}

// The two functions below write `elf` to a new file and return its descriptor and a path to it. The caller closes *fd,
// also after a failure; it is -1 if no file was created.
Fault PlaceInMemory(std::span<const uint8_t> elf, int* fd, std::string* path) {
  constexpr unsigned int kExecutable = 0x10;  // MFD_EXEC, of Linux 6.3: such files may be non-executable by default
  *fd = memfd_create("hone-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING | kExecutable);
  if (*fd < 0 && errno == EINVAL) *fd = memfd_create("hone-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd < 0) return SystemError("cannot create a file in memory");
  HONE_RETURN_IF_FAULT(WriteAll(*fd, elf));
  if (fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return SystemError("cannot seal the file in memory");
  }
  struct stat status;
  if (fstat(*fd, &status) != 0) return SystemError("cannot look at the file in memory");
  *path = UniquePath(*fd, status.st_ino);
  return {};
}

Fault PlaceInFile(std::span<const uint8_t> elf, int* fd, std::string* path) {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/hone-kernels-XXXXXX";
  *fd = mkostemp(name.data(), O_CLOEXEC);
  if (*fd < 0) return SystemError("cannot create the temporary file " + name);
  *path = name;
  return WriteAll(*fd, elf);
}

}  // namespace

CodeObject::~CodeObject() {
  if (handle_ != nullptr) dlclose(handle_);
}

Fault CodeObject::LoadFrom(Placement placement, std::span<const uint8_t> elf, CodeObject* code) {
  HONE_RETURN_IF_FAULT(CheckElf(elf));
  HONE_RETURN_IF_FAULT(CheckFileLimit(elf.size()));
  CodeObject result;
  int fd = -1;
  std::string path;
  const bool in_memory = placement == Placement::kSealedMemory;
  Fault fault = in_memory ? PlaceInMemory(elf, &fd, &path) : PlaceInFile(elf, &fd, &path);
  if (fault.ok()) {
    ShowLibraries();
    result.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (result.handle_ == nullptr) {
      const char* reason = dlerror();
      fault =
          IoError(std::string("cannot load the package's code: ") + (reason != nullptr ? reason : "no reason given"));
    }
  }
  if (fd >= 0) close(fd);  // the mapping keeps the file's contents
  if (!in_memory && !path.empty()) unlink(path.c_str());
  if (fault.ok()) *code = std::move(result);
  return fault;
}

Fault CodeObject::Load(std::span<const uint8_t> elf, CodeObject* code) {
  const Fault first = LoadFrom(Placement::kSealedMemory, elf, code);
  if (first.ok() || first.code != HONE_IO_ERROR) return first;
  const Fault second = LoadFrom(Placement::kTemporaryFile, elf, code);
  if (second.ok() || second.code != HONE_IO_ERROR || second.text == first.text) return second;
  return IoError("through memory: " + first.text + "; through a temporary file: " + second.text);
}

void* CodeObject::Find(const char* symbol) const { return handle_ == nullptr ? nullptr : dlsym(handle_, symbol); }

}  // namespace hone::runtime
