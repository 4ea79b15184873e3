// SPDX-License-Identifier: Apache-2.0
// A decoded kernel of PTX: instructions whose operands are numbers of slots.
//
// A lane has one array of 64-bit slots for everything that an instruction can name: registers, constants, addresses of
// variables, parameters and special registers. So an instruction reads all operands in the same way. decoder.h makes
// kernels from text, group.h runs them.
#ifndef HONE_TESTS_PTX_INSTRUCTION_H_
#define HONE_TESTS_PTX_INSTRUCTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hone::ptx {

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam };

// Where the address spaces begin. A generic address is an address of this process for global memory, or lies in a
// window for the other spaces. Shared memory begins behind 0, as on devices that reserve a part of it.
inline constexpr uint64_t kSharedBegin = 1024, kLocalBegin = 256;
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60, kLocalWindow = uint64_t{1} << 61;

// Slots that every lane has, in this order; then those of the parameters.
enum SpecialSlot : uint32_t { kTidX, kNtidX, kCtaidX, kNctaidX, kLaneId, kWarpId, kZero, kSpecialSlots };

enum class Kind : uint8_t {
  kCompute,  // reads and writes slots and nothing else
  kLoad,
  kStore,
  kPack,    // the slots in its list into `to`
  kUnpack,  // `a` into the slots in its list
  kBranch,
  kExit,
  kTrap,
  kNothing,  // orders accesses that are always in order here
  kCopy,     // cp.async
  kCommitCopies,
  kWaitCopies,
  kWaitAllCopies,
  kFenceProxy,
  kWaitForGrids,  // griddepcontrol.wait: for earlier launches
  kInitMbarrier,  // mbarrier
  kFenceMbarriers,
  kAnnounce,  // mbarrier.expect_tx: bytes that will arrive
  kArrive,    // mbarrier.arrive
  kBulkCopy,  // cp.async.bulk
  // Lanes wait for each other at all kinds from here on. These of a group:
  kBarrier,
  kClusterArrive,  // tells the other groups of the cluster that this one has come
  kClusterWait,    // until all groups have arrived
  kTryWait,        // mbarrier.try_wait, which kernels repeat until it succeeds
  // These of a warp:
  kShuffle,
  kMma,
  // These of a warpgroup, four warps:
  kProductFence,
  kProduct,  // wgmma.mma_async
  kCommitProducts,
  kWaitProducts,
};

enum class Element : uint8_t { kTf32, kF16, kBf16 };  // of operands a and b
enum class Shuffle : uint8_t { kUp, kDown, kButterfly, kIndex };
enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp };
enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };  // the result of a comparison, with a predicate

struct Instruction;
using Compute = void (*)(const Instruction& i, uint64_t* slots);

// A field that an instruction does not use is 0. Slot 0 is never written.
struct Instruction {
  Kind kind = Kind::kNothing;
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNearest;
  Combine combine = Combine::kNone;
  Shuffle shuffle = Shuffle::kUp;
  Element element = Element::kTf32;
  bool guarded = false, guard_negated = false;  // executed only if slot `guard` is true, or if it is false
  bool negated = false;                         // slot `c`, a predicate
  bool is_signed = false;                       // whether a load extends the sign
  bool only_read = false;                       // ld.global.nc: the launch must not write there
  bool saturates = false, flushes = false;      // of conversions
  bool releases = false;                        // the lanes' earlier accesses are released to other groups
  uint8_t bytes = 0;                            // of one element in memory, or of a copy
  uint32_t guard = 0, to = 0, also_to = 0, a = 0, b = 0, c = 0;
  uint32_t list = 0, count = 0;  // operands in Kernel::lists: of vectors, mma and wgmma
  uint32_t target = 0;           // of a branch; for a product, the number of its columns
  int64_t offset = 0;            // added to the address in `a`; for waits, how many may still be running
  Compute compute = nullptr;
};

struct Kernel {
  std::string name;
  uint32_t parameters = 0;  // 64 bits each
  uint32_t slots = 0;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<std::pair<uint32_t, uint64_t>> constants;  // slots with a constant value
  std::vector<std::pair<int, std::string>> source;       // of each instruction: its line and text
  uint32_t lanes = 0;                                    // that a launch must have; 0: any number
  uint32_t cluster = 1;                                  // groups that reach each other's shared memory
  uint64_t shared_bytes = 0, local_bytes = 0;            // without those that the launch requests
  bool has_products = false;
  bool waits_for_grids = false;
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_INSTRUCTION_H_
