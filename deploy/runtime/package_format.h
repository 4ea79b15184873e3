// SPDX-License-Identifier: Apache-2.0
// The .hone file, version 2: a header, then sections, each starting on a page. Little-endian, flat structs, no
// pointers: the runtime maps the file and reads it in place.
//
//   FileHeader | SectionEntry... | manifest, code | manifest, code | ... | constants | metadata
//
// A manifest and the code after it are a program: the whole model for one target. Programs stand in order of
// preference; all have the same inputs and outputs, and share the constants. The metadata is JSON, for people and tools
// only. This file says only what is on disk. The checks that make it safe to use are in package_view.h; the writer is
// deploy/package/package_writer.h. Any change here raises kFormatVersion: a reader takes exactly one version.
//
// Integrity: FileHeader::checksum covers the header and the section table with the sections' checksums, these cover the
// sections, and the bytes between sections are zero. So every byte of the file is covered.
#ifndef HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
#define HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/code_kind.h"

namespace hone::package {

static_assert(std::endian::native == std::endian::little, "packages are read in place, in little-endian order");

// As PNG does: a byte above 127 and line ends of both kinds, so that a transfer as text breaks the magic.
inline constexpr unsigned char kMagic[8] = {0x89, 'H', 'O', 'N', 'E', '\r', '\n', 0x1a};
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr uint64_t kTensorAlignment = 64;  // of every tensor and workspace; HONE_BUFFER_ALIGNMENT
inline constexpr uint32_t kMaxRank = 16;

inline constexpr uint32_t kMaxPrograms = 32;       // so that the section table ends before the first section's page
inline constexpr uint32_t kNoTensor = 0xffffffff;  // as the argument for a buffer that a kernel does not use

enum class SectionKind : uint32_t { kManifest = 1, kCode = 2, kConstants = 3, kMetadata = 4 };

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
  uint32_t section_count;  // two for each program, and two more; their entries follow this struct
  uint64_t file_bytes;
  uint64_t checksum;  // over this struct with this field zero, and the section entries
};

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

// A piece of the manifest's string table, followed there by a zero byte that `bytes` does not count, and preceded by
// that of another piece, if by anything.
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
  CodeKind code;
  // What the code needs of the machine. Of a CPU: features beyond the architecture, "avx2,fma"; names as in
  // base/cpu_features.h. Of a device with lanes: how many a group has at most, shared memory of a group, and the device
  // by name, where the code was compiled for one device only. What another kind of code needs is 0 and empty.
  uint32_t lanes;
  uint64_t shared_bytes;
  TextRef cpu_features;
  TextRef device;
  TextRef target;  // as given to the compiler; no two programs have the same
  uint64_t io_bytes;
  uint64_t arena_bytes;
  TableRef tensors;    // TensorEntry
  TableRef shapes;     // int64_t
  TableRef kernels;    // TextRef: a KernelInterface (base/kernel_interface.h) as text; names are unique
  TableRef calls;      // CallEntry, in order of execution
  TableRef arguments;  // uint32_t, tensor ids or kNoTensor
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

// Packed constants lie in the constants section as the launches of `prepare` left them: a call only runs `main`.
struct CallEntry {
  uint32_t kernel;     // index in `kernels`
  uint32_t arguments;  // index of the first one in `arguments`: one for each buffer of the kernel but workspace slices
  uint64_t workspace_offset;  // in the arena, of the kernel's workspace_bytes
};

// An output that is an input, a constant or another tensor of the model: its bytes are copied.
struct CopyEntry {
  uint32_t source;
  uint32_t target;  // an output
};

static_assert(sizeof(SectionEntry) == 32 && sizeof(FileHeader) == 32 && sizeof(ManifestHeader) == 200 &&
              sizeof(TensorEntry) == 32 && sizeof(CallEntry) == 16 && sizeof(CopyEntry) == 8);

// Of the header and the section table.
constexpr uint64_t HeaderBytes(uint64_t section_count) {
  return sizeof(FileHeader) + section_count * sizeof(SectionEntry);
}
static_assert(HeaderBytes(2 * kMaxPrograms + 2) <= kSectionAlignment);

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
