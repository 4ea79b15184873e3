// SPDX-License-Identifier: Apache-2.0
// A kernel of PTX, decoded: instructions whose operands are numbers of slots.
//
// A lane has one array of 64-bit slots, for everything that an instruction can name: its registers, the numbers and
// addresses that stand in the text, the parameters, and what it can ask of where it stands. So an instruction reads all
// of its operands in one way. decode.h makes this of text, group.h runs it.
#ifndef HONE_TESTS_PTX_INSTRUCTION_H_
#define HONE_TESTS_PTX_INSTRUCTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hone::ptx {

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam };

// Where the spaces begin. Generic addresses are those of this process for global memory, and lie behind a window for
// the others. Shared memory begins as far behind 0 as on devices that keep some of it for themselves.
inline constexpr uint64_t kSharedBegin = 1024, kLocalBegin = 256;
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60, kLocalWindow = uint64_t{1} << 61;

// Slots that every lane has, in this order; then those of the parameters.
enum SpecialSlot : uint32_t { kTidX, kNtidX, kCtaidX, kNctaidX, kLaneId, kWarpId, kZero, kSpecialSlots };

enum class Kind : uint8_t {
  kCompute,  // reads and writes slots and nothing else
  kLoad,
  kStore,
  kPack,    // `to` of the slots in its list
  kUnpack,  // the slots in its list of `a`
  kBranch,
  kExit,
  kTrap,
  kNothing,  // orders what is in order here anyway
  kCopy,     // cp.async
  kCommitCopies,
  kWaitCopies,
  kWaitAllCopies,
  kFenceProxy,
  kWaitForGrids,  // that were launched before
  kMakeObject,    // mbarrier
  kFenceObjects,
  kAnnounce,   // bytes that will arrive
  kArrive,     // at an object
  kGroupCopy,  // cp.async.bulk
  // From here on lanes wait for each other: of a group,
  kBarrier,
  kClusterArrive,  // tells other groups that it is here
  kClusterWait,    // until they were
  kTryWait,        // at an object: what we have asks again until it is there
  // of a warp,
  kShuffle,
  kMma,
  // or of four warps.
  kProductFence,
  kProduct,  // wgmma.mma_async
  kCommitProducts,
  kWaitProducts,
};

enum class Element : uint8_t { kTf32, kF16, kBf16 };  // of factors
enum class Shuffle : uint8_t { kUp, kDown, kButterfly, kIndex };
enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp };
enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };  // a comparison with a predicate

struct Instruction;
using Compute = void (*)(const Instruction& i, uint64_t* slots);

// A field that an instruction does not use is 0: a slot that nobody writes.
struct Instruction {
  Kind kind = Kind::kNothing;
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNearest;
  Combine combine = Combine::kNone;
  Shuffle shuffle = Shuffle::kUp;
  Element element = Element::kTf32;
  bool guarded = false, guard_negated = false;  // done where slot `guard` is true, or is not
  bool negated = false;                         // slot `c`, a predicate
  bool is_signed = false;                       // what is loaded
  bool only_read = false;                       // ld.global.nc: nobody writes there during the launch
  bool saturates = false, flushes = false;      // of conversions
  bool releases = false;                        // tells other groups what lanes did before
  uint8_t bytes = 0;                            // of one element in memory, or of a copy
  uint32_t guard = 0, to = 0, also_to = 0, a = 0, b = 0, c = 0;
  uint32_t list = 0, count = 0;  // operands in Kernel::lists: of vectors, mma and wgmma
  uint32_t target = 0;           // of a branch; of a product, its columns
  int64_t offset = 0;            // added to the address in `a`; of waits, how many may be under way still
  Compute compute = nullptr;
};

struct Kernel {
  std::string name;
  uint32_t parameters = 0;  // 64 bits each
  uint32_t slots = 0;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<std::pair<uint32_t, uint64_t>> constants;  // slots that have a value from the beginning
  std::vector<std::pair<int, std::string>> source;       // of each instruction: its line and text
  uint32_t lanes = 0;                                    // that a group must have; 0: any number
  uint32_t cluster = 1;                                  // groups that reach each other's shared memory
  uint64_t shared_bytes = 0, local_bytes = 0;            // beside what a launch asks for
  bool has_products = false;
  bool waits_for_grids = false;
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_INSTRUCTION_H_
