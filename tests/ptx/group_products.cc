// SPDX-License-Identifier: Apache-2.0
// wgmma: products that 128 lanes begin together, and whose sums are in their registers after the wait.
#include <algorithm>
#include <array>
#include <cstring>

#include "fmt/format.h"
#include "tests/ptx/group.h"
#include "tests/ptx/numbers.h"

namespace hone::ptx {
namespace {

constexpr uint32_t kRows = 64, kBlockRows = 8;
constexpr uint64_t kChunk = 16;                              // contiguous bytes of a row
constexpr uint64_t kRow = 128, kPeriod = kBlockRows * kRow;  // of swizzled rows, bytes
constexpr uint16_t kAllLanes = 0xffff;                       // as the reader of a byte

// Two chunks of a row.
uint32_t StepsOf(Element element) { return element == Element::kTf32 ? 8 : 16; }

uint32_t SumsOf(const Instruction& i) { return i.target / 2; }
bool HasRegisters(const Instruction& i) { return i.count > SumsOf(i); }

bool IsOfWarps(Kind kind) { return kind >= Kind::kProductFence; }

}  // namespace

// "PTX ISA", 9.7.15: in swizzled addresses, the three bits that count chunks are xor-ed with the three that count rows.
uint64_t Group::Blocks::PlaceOf(uint64_t row, uint64_t chunk, uint64_t byte) const {
  const uint64_t block = start + row / kBlockRows * blocks_apart;
  if (!swizzled) return block + row % kBlockRows * kChunk + chunk * chunks_apart + byte;
  const uint64_t address = block + row % kBlockRows * kRow + chunk * kChunk + byte;
  return address ^ (address / kBlockRows & (kRow - kChunk));
}

bool Group::RunWarps(uint32_t first) {
  const std::span lanes = std::span(lanes_).subspan(first, std::min<size_t>(kWarps, lanes_.size() - first));
  if (!error_.ok() || lanes.size() < kWarps || !lanes[0].waits || !IsOfWarps(Next(lanes[0]).kind) || !AllWait(lanes)) {
    return false;
  }
  if (!RunWgmma(Next(lanes[0]), lanes, &products_[first / kWarps])) return false;
  Release(lanes);
  return true;
}

bool Group::RunWgmma(const Instruction& i, std::span<Lane> lanes, Products* products) {
  switch (i.kind) {
    case Kind::kProductFence:
      products->fenced = true;
      return true;
    case Kind::kProduct:
      return BeginProduct(i, lanes, products);
    case Kind::kCommitProducts:
      products->commit_groups.push_back(std::exchange(products->open, {}));
      return true;
    default:
      break;
  }
  while (products->commit_groups.size() > static_cast<size_t>(i.offset)) {
    for (const Product& product : products->commit_groups.front()) {
      if (!FinishProduct(product, lanes)) return false;
    }
    products->commit_groups.pop_front();
  }
  products->used.clear();
  for (const auto& commit_group : products->commit_groups) {
    for (const Product& product : commit_group) Occupy(product, products);
  }
  for (const Product& product : products->open) Occupy(product, products);
  if (products->used.empty()) products->fenced = false;  // lanes may change their registers again
  return true;
}

void Group::Occupy(const Product& product, Products* products) const {
  const Instruction& i = *product.instruction;
  products->used.resize(kernel_.slots);
  for (uint32_t n = 0; n < i.count; ++n) products->used[kernel_.lists[i.list + n]] = true;
}

bool Group::BeginProduct(const Instruction& i, std::span<Lane> lanes, Products* products) {
  if (!products->fenced) {
    return Fail(absl::StatusCode::kFailedPrecondition, i, lanes[0], "has no wgmma.fence before it");
  }
  for (const Instruction* before = &i - 1; HasRegisters(i) && before->kind != Kind::kProductFence; --before) {
    if (before->kind == Kind::kProduct) continue;
    return Fail(absl::StatusCode::kFailedPrecondition, i, lanes[0], "has factors written since the last wgmma.fence");
  }
  Product product{&i, {}, {}, (lanes[0].slots[i.c] & 1) != 0};
  if (!HasRegisters(i) && !FindBlocks(i, lanes, i.a, &product.a)) return false;
  if (!FindBlocks(i, lanes, i.b, &product.b)) return false;
  if (!Visible(product, lanes[0], "which no fence and barrier made visible")) return false;
  Occupy(product, products);
  products->open.push_back(product);
  return true;
}

bool Group::FindBlocks(const Instruction& i, std::span<Lane> lanes, uint32_t slot, Blocks* blocks) {
  const uint64_t descriptor = lanes[0].slots[slot];
  for (const Lane& lane : lanes) {
    if (lane.slots[slot] == descriptor) continue;
    return Fail(
        absl::StatusCode::kFailedPrecondition, i, lane,
        fmt::format("has the descriptor {:#x}, lane {} has {:#x}", lane.slots[slot], lanes[0].number, descriptor));
  }
  constexpr uint64_t kField = 0x3fff, kSwizzled = uint64_t{1} << 62;
  if ((descriptor & ~(kField | kField << 16 | kField << 32 | kSwizzled)) != 0) {
    return Fail(absl::StatusCode::kUnimplemented, i, lanes[0],
                fmt::format("has the descriptor {:#x}, with bits that this machine does not know", descriptor));
  }
  const auto field = [&](int first) { return (descriptor >> first & kField) * kChunk; };
  *blocks = {field(0) - kSharedBegin, field(16), field(32), (descriptor & kSwizzled) != 0};
  if (blocks->swizzled && (field(0) % kPeriod >= kRow || field(32) % kPeriod != 0)) {
    return Fail(absl::StatusCode::kFailedPrecondition, i, lanes[0],
                fmt::format("has swizzled rows at byte {}, {} apart in eights, which is not where eight of them begin",
                            field(0), field(32)));
  }
  const bool is_a = slot == i.a;
  const uint64_t last_block = ((is_a ? kRows : i.target) / kBlockRows - 1) * blocks->blocks_apart;
  const uint64_t end = blocks->swizzled ? blocks->start / kPeriod * kPeriod + last_block + kPeriod
                                        : blocks->start + blocks->chunks_apart + last_block + kBlockRows * kChunk;
  if (field(0) < kSharedBegin || end > shared_.size()) {
    return Fail(absl::StatusCode::kOutOfRange, i, lanes[0],
                fmt::format("reads up to {} of {} bytes of shared memory", end, shared_.size()));
  }
  return true;
}

bool Group::Visible(const Product& product, const Lane& lane, std::string_view otherwise) {
  for (const auto& [blocks, rows] :
       {std::pair<const Blocks&, uint32_t>{product.a, HasRegisters(*product.instruction) ? 0 : kRows},
        {product.b, product.instruction->target}}) {
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint64_t chunk = 0; chunk < 2; ++chunk) {
        const uint64_t begin = blocks.PlaceOf(row, chunk, 0);
        for (uint64_t at = begin; at < begin + kChunk; ++at) {
          SharedUse& touch = touches_[at];
          touch.read = barrier_;
          touch.arrived = arrived_;
          touch.reader = kAllLanes;
          if (unseen_[at] == 0 && touch.copier == 0) continue;
          return Fail(absl::StatusCode::kFailedPrecondition, *product.instruction, lane,
                      fmt::format("reads byte {} of shared memory, {}", at,
                                  touch.copier != 0 ? "to which is being copied" : otherwise));
        }
      }
    }
  }
  return true;
}

std::vector<float> Group::Gather(const Blocks& blocks, uint32_t rows, Element element) const {
  const uint32_t steps = StepsOf(element), bytes = 32 / steps;
  std::vector<float> factors(size_t{rows} * steps);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t step = 0; step < steps; ++step) {
      const uint64_t at = blocks.PlaceOf(row, step / (steps / 2), uint64_t{step % (steps / 2)} * bytes);
      uint32_t bits = 0;
      std::memcpy(&bits, shared_.data() + at, bytes);
      const auto half = static_cast<uint16_t>(bits);
      factors[size_t{row} * steps + step] = element == Element::kTf32  ? CutOff(bits)
                                            : element == Element::kF16 ? FromF16(half)
                                                                       : FromBf16(half);
    }
  }
  return factors;
}

// Lane l of warp w has rows 16 w + l / 4, and 8 more, of steps l % 4, and 4 more.
std::vector<float> Group::GatherRegisters(const Instruction& i, std::span<Lane> lanes) const {
  std::vector<float> factors(size_t{kRows} * 8);
  for (uint32_t n = 0; n < kWarps; ++n) {
    for (uint32_t place = 0; place < 4; ++place) {
      const uint32_t row = 16 * (n / kWarp) + n % kWarp / 4 + 8 * (place % 2), step = n % 4 + 4 * (place / 2);
      const uint64_t slot = lanes[n].slots[kernel_.lists[i.list + SumsOf(i) + place]];
      factors[size_t{row} * 8 + step] = CutOff(static_cast<uint32_t>(slot));
    }
  }
  return factors;
}

// Lane l of warp w has rows 16 w + l / 4, and 8 more, and of every eight columns 2 (l % 4) and the next.
bool Group::FinishProduct(const Product& product, std::span<Lane> lanes) {
  const Instruction& i = *product.instruction;
  if (!Visible(product, lanes[0], "which was written before it was waited for")) return false;
  const uint32_t steps = StepsOf(i.element);
  const std::vector<float> a = HasRegisters(i) ? GatherRegisters(i, lanes) : Gather(product.a, kRows, i.element);
  const std::vector<float> b = Gather(product.b, i.target, i.element);
  for (uint32_t n = 0; n < kWarps; ++n) {
    for (uint32_t place = 0; place < SumsOf(i); ++place) {
      const uint32_t row = 16 * (n / kWarp) + n % kWarp / 4 + 8 * (place / 2 % 2);
      const uint32_t column = 8 * (place / 4) + 2 * (n % 4) + place % 2;
      uint64_t& slot = lanes[n].slots[kernel_.lists[i.list + place]];
      double sum = product.adds ? std::bit_cast<float>(static_cast<uint32_t>(slot)) : 0;
      for (uint32_t k = 0; k < steps; ++k) sum += double{a[row * steps + k]} * double{b[column * steps + k]};
      slot = std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
  }
  return true;
}

}  // namespace hone::ptx
