// SPDX-License-Identifier: Apache-2.0
// The format of a .hone file, version 6: a header, then sections, each of which starts on a page. The structs are flat,
// little-endian and without pointers, because the runtime maps the file and reads it in place.
//
//   FileHeader | SectionEntry... | manifest, code, code, ... | manifest, code, ... | ... | constants | metadata
//
// A manifest and the code sections after it are a program: the whole model for one target or for several that share the
// work. Programs are alternatives in order of preference; they have the same inputs and outputs and share the
// constants. The metadata is JSON for people and tools.
//
// A program has units, one for each code section: a kind of code and what it requires. Every kernel belongs to a unit.
// Every unit works in a home, a memory space with an arena: the units of CPUs share one, and each unit of a device has
// its own. A tensor that a call writes is in the home of the call's unit. A border copies it to another home.
//
// Dimensions may be open sizes, which get their values from the shapes of the inputs of a run, or from an action of it.
// Memory is laid out for the largest ones, and every tensor is compact at its current shape.
//
// Actions come between calls: they give sizes their values, copy tensors, and decide with which call the run goes on.
//
// This file describes only the bytes on disk. package_view.h checks them, and deploy/package/package_writer.h writes
// them. Every change here raises kFormatVersion. A file gets the oldest version that can hold it: version 5 if no call
// names nodes of the model's file and no tensor holds a value of it, version 4 if also it has no actions and no call
// can update an input in place, and version 3 if also no dimension is open and no input has a default value. Readers
// also accept version 2, whose programs have one unit (ManifestHeader2).
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
#include "base/size_steps.h"

namespace hone::package {

static_assert(std::endian::native == std::endian::little, "packages are read in place, in little-endian order");

// As in PNG files: a byte above 127 and both kinds of line end, so that a transfer as text damages the magic.
inline constexpr unsigned char kMagic[8] = {0x89, 'H', 'O', 'N', 'E', '\r', '\n', 0x1a};
inline constexpr uint32_t kFormatVersion = 6;         // the newest
inline constexpr uint32_t kNodesFormatVersion = 6;    // of written files with names of nodes and values
inline constexpr uint32_t kActionsFormatVersion = 5;  // of written files with actions or updates
inline constexpr uint32_t kSizesFormatVersion = 4;    // of written files with open sizes or default values
inline constexpr uint32_t kPlainFormatVersion = 3;    // of other written files
inline constexpr uint32_t kOldestFormatVersion = 2;   // of the files that are read
inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr uint64_t kTensorAlignment = 64;  // bytes, of every tensor and workspace; HONE_BUFFER_ALIGNMENT
inline constexpr uint32_t kRankMax = 16;

inline constexpr uint32_t kProgramsMax = 32;
inline constexpr uint32_t kMaxUnits = 8;              // of a program
inline constexpr uint32_t kFixedExtent = 0xffffffff;  // the entry in `extents` of a dimension that is a number
inline constexpr uint32_t kNoTensor = 0xffffffff;     // the argument for a buffer that a kernel does not use

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
  uint32_t section_count;  // as many section entries follow this struct; at most kMaxSections
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

// The start of the manifest section. A tensor's offset is in one of these address spaces. Inputs and outputs are in the
// io space, which keeps its contents between runs. Intermediates and workspaces share the arena of their home.
// Constants are in the constants section.
struct ManifestHeader {
  TextRef target;      // text of the compiler, for all units together; programs of one target take different shapes
  uint64_t io_bytes;   // size of the io space, a multiple of kTensorAlignment
  TableRef units;      // UnitEntry, in the order of the code sections; 1 to kMaxUnits
  TableRef homes;      // uint64_t: the size of the home's arena, a multiple of kTensorAlignment
  TableRef tensors;    // TensorEntry
  TableRef shapes;     // int64_t
  TableRef kernels;    // KernelEntry; names are unique
  TableRef calls;      // CallEntry, in order of execution
  TableRef arguments;  // uint32_t, tensor ids or kNoTensor
  TableRef inputs;     // uint32_t, tensor ids
  TableRef outputs;    // uint32_t, tensor ids
  TableRef borders;    // BorderEntry, by ascending call
  TableRef copies;     // CopyEntry: first those done after the calls, then those done when the file is loaded
  TableRef strings;    // char
  // The next four are empty if no dimension is open.
  TableRef sizes;       // SizeEntry: the open sizes
  TableRef size_steps;  // SizeStep: step i computes value number i + the number of sizes
  TableRef extents;     // uint32_t, one per element of `shapes`: the number of the dimension's value, or kFixedExtent;
                        // the element of `shapes` is its largest value
  TableRef size_arguments;  // uint32_t, numbers of values: those that kernels take
  TableRef actions;         // ActionEntry, by ascending call
  TableRef updates;         // UpdateEntry, by ascending call
  TableRef nodes;           // NodeEntry: the nodes of the model's file that calls compute
  TableRef call_nodes;      // CallNodeEntry, by ascending call
  TableRef values;          // ValueEntry, by ascending tensor
  TableRef value_axes;      // uint32_t
};

// The start of the manifest section in earlier formats: ManifestHeader without its last ten, six or four tables.
inline constexpr size_t kManifestHeader3Bytes = 208, kManifestHeader4Bytes = 272, kManifestHeader5Bytes = 304;

// The start of the manifest section in format 2. The program has one unit and one home. Its tables have the same
// elements, except that `kernels` has TextRef.
struct ManifestHeader2 {
  CodeKind code;
  uint32_t lanes;
  uint64_t shared_bytes;
  TextRef cpu_features, device, target;
  uint64_t io_bytes, arena_bytes;
  TableRef tensors, shapes, kernels, calls, arguments, inputs, outputs, copies, strings;
};

// An open size. Its value is the extent of a dimension of an input, divided by `step`; or actions of the run set it.
struct SizeEntry {
  TextRef name;
  int64_t min, max;  // the values that it may have, both included
  int64_t step;
  uint32_t tensor;     // id of the input; kNoTensor: actions of the run set it
  uint32_t dimension;  // its dimension; 0 without an input
};

using hone::SizeOp;    // its numbers are on disk
using hone::SizeStep;  // the values are first those of the open sizes, then those of the steps

enum class ActionOp : uint32_t {
  kLabel = 1,       // nothing; jumps lead here
  kReadSize = 2,    // size a := the element of tensor b, which is one bool, i32 or i64
  kSetSize = 3,     // size a := value number b
  kJump = 4,        // the run goes on with action c
  kJumpIfZero = 5,  // the same if value number a is 0
  kCopy = 6,        // tensor a := the elements of tensor b
  kCopyRow = 7,     // row number (value c) of tensor a := the elements of tensor b
  kSwap = 8,        // tensors a and b, intermediates of one size, exchange their memory
  kRequire = 9,     // the run fails unless value number a, the difference of two dimensions, is 0; b: a tensor to name
};
// What a run does before call number `call`, after the actions before it in the table. Tensors may be in any
// home; those of kSwap are in one. A jump leads to an action, and so to its call. Fields that an operation does not use
// are 0.
struct ActionEntry {
  ActionOp op;
  uint32_t call;  // at most the number of calls
  uint32_t a, b, c;
  uint32_t reserved;  // 0
};

// A unit's code is in the code section of the same index after the manifest. CPU code requires cpu_features only; code
// for a device with lanes requires lanes, shared_bytes and device. Those that do not apply are 0 or empty.
struct UnitEntry {
  CodeKind code;
  uint32_t lanes;         // most lanes of a group
  uint64_t shared_bytes;  // most shared memory of a group
  TextRef cpu_features;   // beyond the architecture's: "avx2,fma"; names as in base/cpu_features.h
  TextRef device;         // the only device for which the code was compiled; empty: any
  TextRef target;         // text of the compiler
  uint32_t home;      // index in `homes`; a home of a device has one unit, a home of CPUs is the only one of its kind
  uint32_t reserved;  // 0
};

struct KernelEntry {
  TextRef interface;  // a KernelInterface (base/kernel_interface.h) as text
  uint32_t unit;      // index in `units`: whose code has its functions
  uint32_t reserved;  // 0
};

enum class TensorKind : uint8_t { kInput = 1, kOutput = 2, kConstant = 3, kIntermediate = 4 };

struct TensorEntry {
  TextRef name;  // may be empty
  DType dtype;
  TensorKind kind;
  uint8_t rank;  // number of dimensions
  uint8_t home;  // of an intermediate or output: where it is written; 0 for inputs and constants, which any home reads
  uint32_t shape;   // index of the first dimension in `shapes`
  uint64_t offset;  // in the address space of its kind, a multiple of kTensorAlignment
  uint64_t bytes;   // product of the shape times the size of an element, also for packed constants
};

// A call runs the launches of the kernel's `main` only: the constants section already holds the packed constants that
// its `prepare` computes.
struct CallEntry {
  uint32_t kernel;     // index in `kernels`
  uint32_t arguments;  // index in `arguments` of the first one; one per buffer of the kernel except workspace slices.
                       // That of a buffer of sizes is an index in `size_arguments`
  uint64_t workspace_offset;  // in the arena of its unit's home: start of the kernel's workspace_bytes
};

// Before call number `call`, the runtime copies the bytes of `source` to `target`, an intermediate of the same size in
// another home.
struct BorderEntry {
  uint32_t source;  // tensor id of an intermediate or output that an earlier call or border has written
  uint32_t target;  // tensor id
  uint32_t call;    // index in `calls`
};

// A call whose output equals an input except for some rows, as a cache of keys equals that of the last token except for
// one row. If both are in one place, the runtime writes these rows instead of running the call. The program has one
// home, which is in this process. After the call nothing reads the input.
struct UpdateEntry {
  uint32_t call;    // index in `calls`; reads `input`, `rows` and `starts`, and writes only `output`
  uint32_t input;   // tensor id of an input: [batch, ...]
  uint32_t output;  // tensor id of an output of the same type and shape
  uint32_t rows;    // tensor id: the rows to write, compact, of the output's type; fewer along the axis
  uint32_t starts;  // tensor id: where the rows begin along the axis, an i32 or i64 per entry of the batch; kNoTensor:
                    // 0. Rows beyond either end are not written.
  uint32_t axis;    // dimension of the output, at least 1
};

// A node of the model's file. Names are unique; an operator may be that of another domain than ONNX's.
struct NodeEntry {
  TextRef name;  // as in the file, or "Conv_12" by operator and index
  TextRef op;
};

// Call number `call` computes node number `node`, wholly or in part. Several calls may compute one node.
struct CallNodeEntry {
  uint32_t call;  // index in `calls`
  uint32_t node;  // index in `nodes`
};

// A tensor that holds a value of the model's file once its call has run, until something else is written there.
// The tensor's elements are those of the value, with the value's dimensions in another order: dimension i of the value
// is dimension axes[i] in the tensor. The tensor's own shape may combine dimensions.
struct ValueEntry {
  TextRef name;       // in the file
  uint32_t tensor;    // id of an intermediate or output
  uint32_t axes;      // index in `value_axes` of axes[0]
  uint32_t rank;      // the number of axes; 0: the elements are in the value's own order
  uint32_t reserved;  // 0
};

// An output that equals an input, a constant or another tensor of the model: its bytes are copied after the calls. Or
// the default value of an input, which a run need not set: a constant that is copied when the file is loaded.
struct CopyEntry {
  uint32_t source;  // tensor id; an intermediate or output is in the home of the target; for an input a constant
  uint32_t target;  // tensor id of an output, or (since version 4) of an input, of the same size
};

static_assert(sizeof(SectionEntry) == 32 && sizeof(FileHeader) == 32 && sizeof(ManifestHeader) == 368 &&
              sizeof(ManifestHeader2) == 200 && sizeof(UnitEntry) == 48 && sizeof(KernelEntry) == 16 &&
              sizeof(TensorEntry) == 32 && sizeof(CallEntry) == 16 && sizeof(BorderEntry) == 12 &&
              sizeof(CopyEntry) == 8 && sizeof(SizeEntry) == 40 && sizeof(ActionEntry) == 24 &&
              sizeof(UpdateEntry) == 24 && sizeof(NodeEntry) == 16 && sizeof(CallNodeEntry) == 8 &&
              sizeof(ValueEntry) == 24);

// The bytes of the header and the section table.
constexpr uint64_t HeaderBytes(uint64_t section_count) {
  return sizeof(FileHeader) + section_count * sizeof(SectionEntry);
}
// The section table must fit before the first section's page.
inline constexpr uint32_t kMaxSections = (kSectionAlignment - sizeof(FileHeader)) / sizeof(SectionEntry);
static_assert(HeaderBytes(kMaxSections) <= kSectionAlignment && kMaxSections >= 2 * kProgramsMax + 2);

// Rounds `bytes` up to a multiple of `alignment`, which is a power of two.
constexpr uint64_t AlignUp(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_FORMAT_H_
