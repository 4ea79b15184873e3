// SPDX-License-Identifier: Apache-2.0
// One group of lanes: its shared memory, its lanes, and the instructions that they run together.
//
// Everything asynchronous happens as late as it may, and every byte of shared memory knows its last users. So a missing
// wait or barrier is an error. group_memory.cc has accesses, group_mbarriers.cc bulk copies, group_together.cc
// warps, group_products.cc wgmma.
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

inline constexpr int kUnset = 0xff;                        // bytes of memory that was never written: NaN, or -1
inline constexpr uint32_t kWarp = 32, kWarps = 4 * kWarp;  // lanes that run mma together, and wgmma

inline constexpr uint16_t kByGroup = 0xfffe;  // as SharedUse::copier: a copy of the whole group

class Group {
 public:
  Group(const Kernel& kernel, const Launch& launch);
  // Resets this to the group of that number, before its first instruction. cluster: the groups that reach each other's
  // shared memory, this one included; it must outlive the run.
  absl::Status Begin(uint32_t number, std::span<const std::unique_ptr<Group>> cluster);
  // Runs every lane until it waits, and then releases the lanes whose wait is over. False: there were none.
  absl::StatusOr<bool> Advance();
  bool Ended() const;
  // Whether all lanes wait at the cluster's barrier; whether all groups have arrived there as often as this one; and
  // the release of the lanes.
  bool WaitsForCluster() const;
  bool ClusterHasArrived() const;
  void PassBarrier();
  // The error that names a waiting lane, and the first lane that it waits for.
  absl::Status DeadlockError() const;
  // For a group that ended: fails if a copy to its memory has not arrived.
  absl::Status CheckArrived() const;
  // Adds the other group's uses of global memory to this one's.
  void TakeUses(const Group& other);
  // To be called after all groups: fails if a buffer that was read as read-only was also written.
  absl::Status CheckReadOnly() const;

 private:
  // An asynchronous copy that was begun.
  struct Copy {
    uint64_t to = 0, from = 0;      // offset in shared memory, and address in global memory
    uint32_t bytes = 0, given = 0;  // bytes to write, of which the first `given` are copied; the others become 0
  };
  struct Lane {
    uint32_t number = 0;
    uint64_t* slots = nullptr;
    std::byte* local = nullptr;
    uint32_t pc = 0;
    bool waits = false, ended = false;  // waits: at an instruction that lanes run together
    bool waited_for_grids = false;
    std::vector<Copy> copies;                            // begun and not committed
    std::deque<std::vector<Copy>> commit_groups;         // committed and not waited for, the oldest first
    std::vector<std::pair<uint64_t, uint32_t>> written;  // ranges of shared memory, since the lane's last fence
  };
  // The last uses of a byte of shared memory. Barriers and lanes are numbered from 1; 0: none.
  struct SharedUse {
    uint32_t written = 0, read = 0;  // the barriers before which it was used
    uint16_t writer = 0, reader = 0;
    uint16_t copier = 0;   // the lane whose copy to the byte has not arrived
    uint32_t arrived = 0;  // how often the group had arrived at the cluster's barrier at the last use
    bool by_lane = false;  // whether lanes used it since then, and not only wgmma
  };
  // An mbarrier: it counts the arrivals and bytes of a phase. When both are complete, the next phase begins.
  struct Mbarrier {
    bool fenced = false;
    uint32_t made = 0;      // arrival that other groups must have waited for before they use it; 0: not usable yet
    uint64_t arrivals = 0;  // that a phase needs
    uint64_t missing = 0;   // of these, in the current phase
    int64_t bytes = 0;      // announced and not arrived
    uint64_t phase = 0;
    std::vector<Copy> copies;  // that it counts and that have not arrived
  };
  // A matrix in shared memory, as a descriptor of wgmma gives it.
  struct Blocks {
    uint64_t start = 0, chunks_apart = 0, blocks_apart = 0;  // bytes
    bool swizzled = false;                                   // rows of 128 bytes are contiguous, eight of them a block
    // The offset of a byte of a chunk of a row in shared memory.
    uint64_t PlaceOf(uint64_t row, uint64_t chunk, uint64_t byte) const;
  };
  struct Product {
    const Instruction* instruction = nullptr;
    Blocks a, b;
    bool adds = true;  // to the previous values of the sums
  };
  // The products that a warpgroup began and did not wait for.
  struct Products {
    bool fenced = false;
    std::vector<Product> open;                       // not committed
    std::deque<std::vector<Product>> commit_groups;  // the oldest first
    std::vector<bool> used;  // per slot: whether a product still reads or writes it; empty: none
  };
  // A piece of global memory: an instruction that read it as read-only, and one that wrote it. Null: none.
  struct Use {
    const Instruction* only_read = nullptr;
    const Instruction* written = nullptr;
  };

  void Reset(uint32_t number);
  // Runs the lane until it waits or ends. False: error_ says why it failed.
  bool RunLane(Lane* lane);
  void Repack(const Instruction& i, uint64_t* s) const;
  bool Load(const Instruction& i, Lane* lane);
  bool Store(const Instruction& i, Lane* lane);
  bool DoCopies(const Instruction& i, Lane* lane);
  bool BeginCopy(const Instruction& i, Lane* lane);
  void Finish(std::span<const Copy> copies, Lane* lane);
  void WaitForCopies(size_t pending, Lane* lane);
  // The bytes at that address; there_ says how many of them exist. Null: the lane must not access them.
  std::byte* Reach(const Instruction& i, const Lane& lane, Space space, uint64_t address, uint64_t bytes, bool writes);
  std::byte* ReachGlobal(const Instruction& i, const Lane& lane, uint64_t address, uint64_t bytes, bool writes);
  bool TouchShared(const Instruction& i, const Lane& lane, uint64_t offset, uint64_t bytes, bool writes);
  void MarkWritten(uint64_t offset, uint32_t bytes, Lane* lane);
  void FenceWrites(Lane* lane);
  bool Touches(const Instruction& i, const std::vector<bool>& used) const;

  // group_mbarriers.cc: bulk copies and their mbarriers
  Mbarrier* FindMbarrier(const Instruction& i, const Lane& lane, uint64_t address);
  bool UseMbarrier(const Instruction& i, const Lane& lane);
  bool BeginBulkCopy(const Instruction& i, const Lane& lane);
  bool Expect(const Instruction& i, const Lane& lane, const Group& from, const Copy& copy, uint64_t object);
  bool TryWait(Lane* lane);
  void Deliver(Mbarrier* object);

  // Runs an instruction that all its lanes wait at. False: there is none.
  bool RunTogether();
  bool RunBarrier();
  bool AllAt(Kind barrier) const;
  void Arrive();
  bool RunWarp(uint32_t first);
  bool RunWarps(uint32_t first);
  // Whether all `lanes` wait at the instruction of the first of them.
  static bool AllWait(std::span<const Lane> lanes);
  void Release(std::span<Lane> lanes);
  // Shuffles the lanes of a mask in a warp, if they all wait at `i`. False: they do not.
  bool ShuffleTogether(const Instruction& i, std::span<Lane> warp, const Lane& asking);
  void Multiply(const Instruction& i, std::span<Lane> warp);
  bool RunWgmma(const Instruction& i, std::span<Lane> lanes, Products* products);
  bool BeginProduct(const Instruction& i, std::span<Lane> lanes, Products* products);
  bool FindBlocks(const Instruction& i, std::span<Lane> lanes, uint32_t slot, Blocks* blocks);
  bool Visible(const Product& product, const Lane& lane, std::string_view otherwise);
  // Marks the product's registers as used until it was waited for.
  void Occupy(const Product& product, Products* products) const;
  bool FinishProduct(const Product& product, std::span<Lane> lanes);
  // The 64 x 8 factors of operand a that lanes have in registers.
  std::vector<float> GatherRegisters(const Instruction& i, std::span<Lane> lanes) const;
  // rows x 16 factors of 16 bits, or rows x 8 of 32 bits.
  std::vector<float> Gather(const Blocks& blocks, uint32_t rows, Element element) const;

  const Instruction& Next(const Lane& lane) const { return kernel_.code[lane.pc]; }
  std::string Place(const Instruction& i) const;
  bool Fail(absl::StatusCode code, const Instruction& i, const Lane& lane, std::string_view what);

  const Kernel& kernel_;
  const Launch& launch_;
  uint32_t number_ = 0;
  bool ascending_ = true;  // lanes run in ascending order until they next wait; else in descending order
  std::vector<uint64_t> slots_;
  std::vector<std::byte> shared_, local_;
  std::vector<Lane> lanes_;
  std::vector<Products> products_;
  std::vector<SharedUse> touches_;          // per byte of shared memory
  uint32_t barrier_ = 1;                    // number of the next barrier
  std::map<uint64_t, Mbarrier> mbarriers_;  // by offset in shared memory
  std::span<const std::unique_ptr<Group>> cluster_;
  uint32_t arrived_ = 0, waited_ = 0;  // how often, at the cluster's barrier
  uint32_t released_ = 0;              // the last arrival that released the lanes' earlier accesses to other groups
  // Per byte of shared memory: the lane, from 1 on, whose write wgmma would not see yet, or kFenced; 0: none.
  std::vector<uint16_t> unseen_;
  std::vector<std::pair<uint64_t, uint32_t>> fenced_;  // since the last barrier
  std::vector<Use> uses_;                              // per entry of launch_.memory
  size_t last_memory_ = 0;                             // entry of launch_.memory that the last address was in
  uint64_t existing_bytes_ = 0;  // set by Reach: bytes that exist at the address, at most those requested
  absl::Status error_;
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_GROUP_H_
