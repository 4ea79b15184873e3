// SPDX-License-Identifier: Apache-2.0
// The format of a .hone file, version 2: a header, then sections, each of which starts on a page. The structs are flat,
// little-endian and without pointers, because the runtime maps the file and reads it in place.
//
//   FileHeader | SectionEntry... | manifest, code | manifest, code | ... | constants | metadata
//
// A manifest and the code after it are a program: the whole model for one target. Programs are in order of preference,
// have the same inputs and outputs, and share the constants. The metadata is JSON for people and tools. This file
// describes only the bytes on disk. package_view.h checks them, and deploy/package/package_writer.h writes them. Every
// change here raises kFormatVersion: a reader accepts exactly one version.
//
// Integrity: FileHeader::checksum covers the header and the section table. The table holds a checksum of each section.
// The bytes between sections must be zero. Thus every byte of the file is covered.
#ifndef HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
#define HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/code_kind.h"
#include "base/element_type.h"

namespace hone::package {

static_assert(std::endian::native == std::endian::little, "packages are read in place, in little-endian order");

// As in PNG files: a byte above 127 and both kinds of line end, so that a transfer as text damages the magic.
inline constexpr unsigned char kMagic[8] = {0x89, 'H', 'O', 'N', 'E', '\r', '\n', 0x1a};
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr uint64_t kTensorAlignment = 64;  // bytes, of every tensor and workspace; HONE_BUFFER_ALIGNMENT
inline constexpr uint32_t kRankMax = 16;

inline constexpr uint32_t kProgramsMax = 32;       // the section table must fit before the first section's page
inline constexpr uint32_t kNoTensor = 0xffffffff;  // the argument for a buffer that a kernel does not use

enum class SectionKind : uint32_t { kManifest = 1, kCode = 2, kConstants = 3, kMetadata = 4 };

struct SectionEntry {
  SectionKind kind;
  uint32_t reserved;  // 0
  uint64_t offset;    // from the start of the file, a multiple of kSectionAlignment
  uint64_t bytes;
  uint64_t checksum;  // of the section's bytes (checksum.h)
};

struct FileHeader {
  unsigned char magic[8];
  uint32_t version;
  uint32_t section_count;  // two per program, and two; as many section entries follow this struct
  uint64_t file_bytes;     // size of the whole file
  uint64_t checksum;       // of this struct with this field zero, then of the section entries
};

using hone::DType;  // its numbers are on disk

// A text in the manifest's string table: all bytes between two zero bytes, or between the start of the table and a zero
// byte. Several refs may name the same text; refs never name a part of one.
struct TextRef {
  uint32_t offset;  // from the start of the string table
  uint32_t bytes;   // without the zero byte at the end
};

// An array in the manifest section. Its comment in ManifestHeader names the type of its elements.
struct TableRef {
  uint64_t offset;  // from the start of the manifest, a multiple of 8
  uint64_t count;   // elements
};

// The start of the manifest section. A tensor's offset is in one of three address spaces. Inputs and outputs are in the
// io space, which keeps its contents between runs. Intermediates and workspaces share the arena. Constants are in the
// constants section.
struct ManifestHeader {
  CodeKind code;
  // The code's requirements. CPU code uses cpu_features only; code for a device with lanes uses the other three. Unused
  // ones are 0 or empty.
  uint32_t lanes;         // most lanes of a group
  uint64_t shared_bytes;  // most shared memory of a group
  TextRef cpu_features;   // beyond the architecture's: "avx2,fma"; names as in base/cpu_features.h
  TextRef device;         // the only device for which the code was compiled; empty: any
  TextRef target;         // text of the compiler; different in every program
  uint64_t io_bytes;      // size of the io space, a multiple of kTensorAlignment
  uint64_t arena_bytes;   // size of the arena, a multiple of kTensorAlignment
  TableRef tensors;       // TensorEntry
  TableRef shapes;        // int64_t
  TableRef kernels;       // TextRef: a KernelInterface (base/kernel_interface.h) as text; names are unique
  TableRef calls;         // CallEntry, in order of execution
  TableRef arguments;     // uint32_t, tensor ids or kNoTensor
  TableRef inputs;        // uint32_t, tensor ids
  TableRef outputs;       // uint32_t, tensor ids
  TableRef copies;        // CopyEntry, done after the calls
  TableRef strings;       // char
};

enum class TensorKind : uint8_t { kInput = 1, kOutput = 2, kConstant = 3, kIntermediate = 4 };

struct TensorEntry {
  TextRef name;  // may be empty
  DType dtype;
  TensorKind kind;
  uint16_t rank;    // number of dimensions
  uint32_t shape;   // index of the first dimension in `shapes`
  uint64_t offset;  // in the address space of its kind, a multiple of kTensorAlignment
  uint64_t bytes;   // product of the shape times the size of an element, also for packed constants
};

// A call runs the launches of the kernel's `main` only: the constants section already holds the packed constants that
// its `prepare` computes.
struct CallEntry {
  uint32_t kernel;     // index in `kernels`
  uint32_t arguments;  // index in `arguments` of the first one; one per buffer of the kernel except workspace slices
  uint64_t workspace_offset;  // in the arena: start of the kernel's workspace_bytes
};

// An output that equals an input, a constant or another tensor of the model: its bytes are copied after the calls.
struct CopyEntry {
  uint32_t source;  // tensor id
  uint32_t target;  // tensor id of an output of the same size
};

static_assert(sizeof(SectionEntry) == 32 && sizeof(FileHeader) == 32 && sizeof(ManifestHeader) == 200 &&
              sizeof(TensorEntry) == 32 && sizeof(CallEntry) == 16 && sizeof(CopyEntry) == 8);

// The bytes of the header and the section table.
constexpr uint64_t HeaderBytes(uint64_t section_count) {
  return sizeof(FileHeader) + section_count * sizeof(SectionEntry);
}
static_assert(HeaderBytes(2 * kProgramsMax + 2) <= kSectionAlignment);

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
