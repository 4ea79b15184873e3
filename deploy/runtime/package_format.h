// The .hone file, version 1: header, then four sections, each starting on a page. Little-endian, flat structs, no
// pointers, no text to parse: the runtime maps the file and reads it in place.
//
//   FileHeader | manifest | shared object (ELF) | constants | metadata (JSON, for people and tools only)
//
// This file says only what is on disk. The checks that make it safe to use are in package_view.h; the writer is
// deploy/package/package_writer.h. Any change here raises kFormatVersion: a reader takes exactly one version.
//
// Integrity: FileHeader::checksum covers the header with the section checksums in it, these cover the sections, and
// the bytes between sections are zero. So every byte of the file is covered.
#ifndef HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
#define HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hone::package {

static_assert(std::endian::native == std::endian::little, "packages are read in place, in little-endian order");

// As PNG does: a byte above 127 and line ends of both kinds, so that a transfer as text breaks the magic.
inline constexpr unsigned char kMagic[8] = {0x89, 'H', 'O', 'N', 'E', '\r', '\n', 0x1a};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr uint64_t kTensorAlignment = 64;  // of every tensor and workspace; HONE_BUFFER_ALIGNMENT
inline constexpr uint32_t kMaxRank = 16;

enum class SectionKind : uint32_t { kManifest = 1, kSharedObject = 2, kConstants = 3, kMetadata = 4 };
inline constexpr uint32_t kSectionCount = 4;  // in the order of their numbers

struct SectionEntry {
  SectionKind kind;
  uint32_t reserved;  // 0
  uint64_t offset;    // from the start of the file, a multiple of kSectionAlignment
  uint64_t bytes;
  uint64_t checksum;  // checksum.h, over the section's bytes
};

struct FileHeader {
  unsigned char magic[8];
  uint32_t version;
  uint32_t section_count;
  uint64_t file_bytes;
  uint64_t checksum;  // over this struct with this field zero
  SectionEntry sections[kSectionCount];
};

enum class Arch : uint32_t { kX86_64 = 1, kAArch64 = 2, kArm = 3 };

enum class DType : uint8_t {
  kBool = 1,  // one byte, 0 or 1
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kFloat16 = 10,
  kBFloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
};

// A piece of the manifest's string table, followed there by a zero byte that `bytes` does not count.
struct TextRef {
  uint32_t offset;
  uint32_t bytes;
};

// An array in the manifest section.
struct TableRef {
  uint64_t offset;  // from the start of the manifest, a multiple of 8
  uint64_t count;   // elements
};

// Three address spaces for tensors, besides the constants section: inputs and outputs have memory of their own that
// keeps its contents between runs; intermediates and workspaces share the arena.
struct ManifestHeader {
  Arch arch;
  uint32_t reserved;     // 0
  TextRef cpu_features;  // what the code needs beyond the architecture: "avx2,fma"; names as in cpu_features.h
  TextRef model_name;
  TextRef target;  // as given to the compiler
  TextRef compiler_version;
  uint64_t io_bytes;
  uint64_t arena_bytes;
  TableRef tensors;    // TensorEntry
  TableRef shapes;     // int64_t
  TableRef calls;      // CallEntry, in order of execution
  TableRef arguments;  // uint32_t, tensor ids
  TableRef inputs;     // uint32_t, tensor ids
  TableRef outputs;    // uint32_t, tensor ids
  TableRef copies;     // CopyEntry, done after the calls
  TableRef strings;    // char
};

enum class TensorKind : uint8_t { kInput = 1, kOutput = 2, kConstant = 3, kIntermediate = 4 };

struct TensorEntry {
  TextRef name;  // empty where there is none
  DType dtype;
  TensorKind kind;
  uint16_t rank;
  uint32_t shape;   // index of the first dimension in `shapes`
  uint64_t offset;  // in its address space (io, constants or arena), a multiple of kTensorAlignment
  uint64_t bytes;   // product of the shape times the size of an element; of packed constants too
};

struct CallEntry {
  TextRef symbol;             // a HoneKernel in the shared object
  uint32_t arguments;         // index of the first one in `arguments`
  uint32_t argument_count;    // inputs, constants, packed constants, outputs: the kernel's buffers
  uint32_t output_count;      // how many of the last arguments the kernel writes
  uint32_t reserved;          // 0
  uint64_t workspace_bytes;   // 0 if the kernel needs none
  uint64_t workspace_offset;  // in the arena
};

// An output that is an input, a constant or another tensor of the model: its bytes are copied.
struct CopyEntry {
  uint32_t source;
  uint32_t target;  // an output
};

static_assert(sizeof(SectionEntry) == 32 && sizeof(FileHeader) == 160 && sizeof(ManifestHeader) == 184 &&
              sizeof(TensorEntry) == 32 && sizeof(CallEntry) == 40 && sizeof(CopyEntry) == 8);

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
