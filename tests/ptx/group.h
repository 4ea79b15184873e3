// SPDX-License-Identifier: Apache-2.0
// One group of lanes at a time: its memory, its lanes, and what they do together.
#ifndef HONE_TESTS_PTX_GROUP_H_
#define HONE_TESTS_PTX_GROUP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptx/instruction.h"
#include "tests/ptx/program.h"

namespace hone::ptx {

inline constexpr int kUnset = 0xff;                        // memory that nobody wrote: NaN, or -1
inline constexpr uint32_t kWarp = 32, kWarps = 4 * kWarp;  // lanes that mma takes, and wgmma

inline constexpr uint16_t kByGroup = 0xfffe;  // instead of the lane that copies

class Group {
 public:
  Group(const Kernel& kernel, const Launch& launch);
  // Before the first instruction of the group of that number. cluster: groups that reach each other's shared memory,
  // this one among them.
  absl::Status Begin(uint32_t number, std::span<const std::unique_ptr<Group>> cluster);
  // Lanes run until they wait, and then those that can go on do. False: none could.
  absl::StatusOr<bool> Advance();
  bool Ended() const;
  // Whether all lanes wait until all groups of the cluster have arrived as often as this one; and then they go on.
  bool WaitsForCluster() const;
  bool ClusterIsThere() const;
  void PassBarrier();
  // One that waits, and the first of those that it waits for.
  absl::Status Stuck() const;
  // Of a group that ended: that nothing is on its way to its memory.
  absl::Status CheckArrived() const;
  // What the other did with memory of all, as if this one had.
  void TakeUses(const Group& other);
  // After all groups: nothing was written that was read as what nobody writes.
  absl::Status CheckReadOnly() const;

 private:
  // An asynchronous copy that was asked for: where shared memory begins to change, from where, and how much of it is
  // not zeros.
  struct Copy {
    uint64_t to = 0, from = 0;
    uint32_t bytes = 0, given = 0;
  };
  struct Lane {
    uint32_t number = 0;
    uint64_t* slots = nullptr;
    std::byte* local = nullptr;
    uint32_t pc = 0;
    bool waits = false, ended = false;  // at an instruction that lanes do together; for ever
    bool waited_for_grids = false;
    std::vector<Copy> copies;  // that belong to no bundle yet
    std::deque<std::vector<Copy>> bundles;
    std::vector<std::pair<uint64_t, uint32_t>> written;  // of shared memory, since its last fence
  };
  // Who used a byte of shared memory last, and before which barrier: their number, from 1 on. Lanes count from 1, too.
  struct Touch {
    uint32_t written = 0, read = 0;
    uint16_t writer = 0, reader = 0;
    uint16_t copier = 0;   // whose copy is on its way there
    uint32_t arrived = 0;  // how often the group had, when it was used last
    bool by_lane = false;  // and whether lanes did, not only what reads shared memory itself
  };
  // An mbarrier: it counts arrivals and bytes of a phase, and then begins the next.
  struct Object {
    bool fenced = false;
    uint32_t made = 0;                   // for all lanes of those that know of so many arrivals; 0: for nobody yet
    uint64_t arrivals = 0, missing = 0;  // of every phase, of this one
    int64_t bytes = 0;                   // announced, and not there
    uint64_t phase = 0;
    std::vector<Copy> copies;  // that it tells of, and that have not arrived
  };
  // A matrix in shared memory, as wgmma finds it.
  struct Blocks {
    uint64_t start = 0, chunks_apart = 0, blocks_apart = 0;  // bytes
    bool swizzled = false;                                   // rows are side by side, of 128 bytes, in eights
    // Where a byte of a chunk of a row is.
    uint64_t PlaceOf(uint64_t row, uint64_t chunk, uint64_t byte) const;
  };
  struct Product {
    const Instruction* instruction = nullptr;
    Blocks a, b;
    bool adds = true;  // to what the sums are
  };
  // Of four warps: what they began and did not wait for.
  struct Products {
    bool fenced = false;
    std::vector<Product> open;
    std::deque<std::vector<Product>> bundles;
    std::vector<bool> used;  // slots that are being written or read; empty: none
  };
  // Of a piece of global memory: instructions that read it as what nobody writes, and that wrote it.
  struct Use {
    const Instruction* only_read = nullptr;
    const Instruction* written = nullptr;
  };

  void Reset(uint32_t number);
  // Until it waits or ends; false: error_ says why not.
  bool RunLane(Lane* lane);
  void Repack(const Instruction& i, uint64_t* s) const;
  bool Load(const Instruction& i, Lane* lane);
  bool Store(const Instruction& i, Lane* lane);
  bool DoCopies(const Instruction& i, Lane* lane);
  bool BeginCopy(const Instruction& i, Lane* lane);
  void Finish(std::span<const Copy> copies, Lane* lane);
  void WaitForCopies(size_t pending, Lane* lane);
  // The bytes at that address, there_ of them; nullptr where the lane must not reach.
  std::byte* Reach(const Instruction& i, const Lane& lane, Space space, uint64_t address, uint64_t bytes, bool writes);
  std::byte* ReachGlobal(const Instruction& i, const Lane& lane, uint64_t address, uint64_t bytes, bool writes);
  bool TouchShared(const Instruction& i, const Lane& lane, uint64_t offset, uint64_t bytes, bool writes);
  void MarkWritten(uint64_t offset, uint32_t bytes, Lane* lane);
  void FenceWrites(Lane* lane);
  bool Touches(const Instruction& i, const std::vector<bool>& used) const;

  // group_objects.cc: copies of groups, and what tells of them
  Object* FindObject(const Instruction& i, const Lane& lane, uint64_t address);
  bool UseObject(const Instruction& i, const Lane& lane);
  bool BeginGroupCopy(const Instruction& i, const Lane& lane);
  bool Expect(const Instruction& i, const Lane& lane, const Group& from, const Copy& copy, uint64_t object);
  bool TryWait(Lane* lane);
  void Deliver(Object* object);

  // What lanes that wait can do together; false: nothing.
  bool Meet();
  bool MeetAtBarrier();
  bool AllAt(Kind barrier) const;
  void Arrive();
  bool MeetInWarp(uint32_t first);
  bool MeetInWarps(uint32_t first);
  // Whether all `lanes` wait at the instruction of the first of them.
  static bool AllWait(std::span<const Lane> lanes);
  void GoOn(std::span<Lane> lanes);
  // Those of a mask in a warp, if they all wait at `i`.
  bool ShuffleTogether(const Instruction& i, std::span<Lane> warp, const Lane& asking);
  void Multiply(const Instruction& i, std::span<Lane> warp);
  bool DoTogether(const Instruction& i, std::span<Lane> lanes, Products* products);
  bool BeginProduct(const Instruction& i, std::span<Lane> lanes, Products* products);
  bool FindBlocks(const Instruction& i, std::span<Lane> lanes, uint32_t slot, Blocks* blocks);
  bool Visible(const Product& product, const Lane& lane, std::string_view otherwise);
  // Its registers are nobody else's until it was waited for.
  void Occupy(const Product& product, Products* products) const;
  bool FinishProduct(const Product& product, std::span<Lane> lanes);
  // 64 x 8 factors that lanes have in registers.
  std::vector<float> GatherRegisters(const Instruction& i, std::span<Lane> lanes) const;
  // rows x 16 factors, or 8 of 32 bits.
  std::vector<float> Gather(const Blocks& blocks, uint32_t rows, Element element) const;

  const Instruction& Next(const Lane& lane) const { return kernel_.code[lane.pc]; }
  std::string Place(const Instruction& i) const;
  bool Fail(absl::StatusCode code, const Instruction& i, const Lane& lane, std::string_view what);

  const Kernel& kernel_;
  const Launch& launch_;
  uint32_t number_ = 0;
  bool forth_ = true;  // in which order lanes run until they meet next
  std::vector<uint64_t> slots_;
  std::vector<std::byte> shared_, local_;
  std::vector<Lane> lanes_;
  std::vector<Products> products_;
  std::vector<Touch> touches_;          // of shared memory
  uint32_t barrier_ = 1;                // the next one
  std::map<uint64_t, Object> objects_;  // by where they are in shared memory
  std::span<const std::unique_ptr<Group>> cluster_;
  uint32_t arrived_ = 0, waited_ = 0;  // where groups of the cluster meet: how often
  uint32_t released_ = 0;              // the last arrival by which others know what lanes did before
  // Of bytes of shared memory that wgmma would not see: the lane that wrote, from 1 on, or kFenced.
  std::vector<uint16_t> unseen_;
  std::vector<std::pair<uint64_t, uint32_t>> fenced_;  // since the last barrier
  std::vector<Use> uses_;                              // of launch_.memory
  size_t last_memory_ = 0;                             // where an address was found
  uint64_t there_ = 0;                                 // bytes from that address on, of those that were asked for
  absl::Status error_;
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_GROUP_H_
