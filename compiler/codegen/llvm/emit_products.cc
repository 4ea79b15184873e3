// SPDX-License-Identifier: Apache-2.0
// Tensor instructions that read shared memory themselves, and go on while their lanes do. Those that stand beside each
// other begin together and are waited for once; of the same rows, columns that lie evenly are one instruction of more.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

constexpr int64_t kMostColumns = 256, kColumns = 8;  // of one instruction, and of one block of them
constexpr int64_t kUnit = 16;                        // bytes, in which a descriptor counts
constexpr int64_t kWarp = ir::kLanesOfRow * ir::kBlockRows;
constexpr int64_t kLanes = 128;                 // that run an instruction together: four warps
constexpr const char kFours[] = "lane\nfours";  // which four of a group's warps; no Var of a func is called so

bool ReadsItself(const ir::Contract& contract) { return EntryOf(contract.instruction).blocks; }

const ir::Buffer& BufferOf(const ir::MatrixOperand& operand) { return operand.first.As<ir::Load>()->buffer; }

// Nothing but such instructions, written out.
bool IsProducts(const ir::Stmt& s) {
  if (const ir::Contract* contract = s.As<ir::Contract>()) return ReadsItself(*contract);
  if (const ir::For* loop = s.As<ir::For>()) {
    return loop->kind == ir::LoopKind::kUnrolled && IsProducts(loop->body);
  }
  const ir::Block* block = s.As<ir::Block>();
  return block != nullptr && !block->stmts.empty() && std::ranges::all_of(block->stmts, IsProducts);
}

// Nothing but copies that begin.
bool IsCopies(const ir::Stmt& s) {
  if (s.As<ir::Copy>() != nullptr || s.As<ir::Commit>() != nullptr) return true;
  const bool around = s.As<ir::For>() != nullptr || s.As<ir::If>() != nullptr || s.As<ir::Block>() != nullptr;
  bool copies = around;
  if (around) {
    ir::ForEachChild(s, [&](const ir::Stmt& child) { copies = copies && IsCopies(child); }, [](const ir::Expr&) {});
  }
  return copies;
}

// As the instruction has its factors in its name; and what is said of them: signs, and of halves that rows are chunks.
struct FactorSpelling {
  std::string_view types, signs;
};
FactorSpelling SpellingOf(ir::TensorInstruction instruction) {
  if (ir::EntryOf(instruction).a == ir::DType::kFloat32) return {"tf32.tf32", "1, 1"};
  return {instruction == ir::TensorInstruction::kWgmmaBf16 ? "bf16.bf16" : "f16.f16", "1, 1, 0, 0"};
}

}  // namespace

// One contract: where its operands begin, and the places of its sums in the order of the instruction, behind `sum`.
// Flat indices, in which loops that are written out are numbers.
struct Emitter::Product {
  const ir::Contract* contract;
  ir::Expr a, b, sum;
  std::vector<int64_t> sums;
};

const ir::Buffer& Emitter::SumOf(const Product& product) { return BufferOf(product.contract->sum); }

bool HasProducts(const ir::Stmt& s) {
  return ir::AnyStmt(s, [](const ir::Stmt& x) {
    const ir::Contract* contract = x.As<ir::Contract>();
    return contract != nullptr && ReadsItself(*contract);
  });
}

void Emitter::GatherProducts(const ir::Stmt& s, std::vector<Product>* products) {
  if (const ir::For* loop = s.As<ir::For>()) {
    return ForEachTurn(*loop, [&] { GatherProducts(loop->body, products); });
  }
  if (const ir::Block* block = s.As<ir::Block>()) {
    for (const ir::Stmt& stmt : block->stmts) GatherProducts(stmt, products);
    return;
  }
  const ir::Contract& contract = *s.As<ir::Contract>();
  const auto known = [&](const ir::MatrixOperand& operand) {
    return ir::Simplify(WrittenOut(operand.first.As<ir::Load>()->indices[0]), ranges_);
  };
  ir::Linear sum = ir::ToLinear(known(contract.sum), ranges_);
  const int64_t first = std::exchange(sum.constant, 0);
  Product product{&contract, known(contract.a), known(contract.b), ir::FromLinear(sum), {}};
  for (const int64_t row : {int64_t{0}, contract.sum.stride}) {
    product.sums.insert(product.sums.end(), {first + row, first + row + 1});
  }
  products->push_back(std::move(product));
}

// Whether both have the same instruction and the same a.
bool Emitter::ShareRows(const Product& x, const Product& y) {
  const ir::Contract &c = *x.contract, &d = *y.contract;
  return c.instruction == d.instruction && c.a.stride == d.a.stride && c.a.apart == d.a.apart &&
         BufferOf(c.a) == BufferOf(d.a) && ir::Equal(x.a, y.a);
}

// Before all else, once: as a number that a warp's lanes can be seen to have in common.
void Emitter::NumberFours() {
  if (func_.grid.lanes <= kLanes) return;
  llvm::Value* const own = builder_.CreateTrunc(
      builder_.CreateLShr(variables_.at(ir::kLaneVar), std::countr_zero<uint64_t>(kLanes)), builder_.getInt32Ty());
  llvm::Value* const common =
      builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
                               {builder_.getInt32(~0U), own, builder_.getInt32(0), builder_.getInt32(kWarp - 1)});
  ranges_[kFours] = {0, func_.grid.lanes / kLanes - 1};
  variables_[kFours] = builder_.CreateZExt(common, builder_.getInt64Ty());
}

// How many of the products, from the first on, are one instruction, and by how many elements their columns lie apart.
std::pair<size_t, int64_t> Emitter::Together(std::span<const Product> products) const {
  const Product& first = products[0];
  int64_t apart = kColumns * first.contract->b.stride;
  size_t count = 1;
  for (; count < products.size() && static_cast<int64_t>(count) < kMostColumns / kColumns; ++count) {
    const Product &next = products[count], &before = products[count - 1];
    const ir::Contract &c = *next.contract, &d = *first.contract;
    const bool alike = ShareRows(next, first) && c.b.apart == d.b.apart && BufferOf(c.b) == BufferOf(d.b);
    if (!alike || SumOf(next) != SumOf(first)) break;
    const bool again = std::ranges::any_of(products.first(count), [&](const Product& p) {
      return std::ranges::find_first_of(p.sums, next.sums) != p.sums.end();
    });
    const std::optional<int64_t> step = ir::ConstantValue(next.b - before.b, ranges_);
    if (again || !step.has_value() || *step <= 0 || (count > 1 && *step != apart)) break;
    apart = *step;
  }
  return {count, apart};
}

// What tells the instruction where an operand lies: its first row or column of all lanes, which is that of the first
// lane, in units of 16 bytes; by how much chunks and blocks lie apart, and whether rows are swizzled. It must be the
// same in all lanes, and best seen to be: then it costs registers that a warp has once. Operands that lie a constant
// apart are one addition apart.
llvm::Value* Emitter::EmitDescriptor(const ir::MatrixOperand& operand, const ir::Expr& first, int64_t blocks_apart) {
  const ir::Buffer& buffer = BufferOf(operand);
  const int64_t size = ir::SizeOf(buffer->dtype);
  const ir::Expr lane = func_.grid.lanes > kLanes ? ir::MakeVar(kFours) * ir::Expr(kLanes) : ir::Expr(0);
  const ir::Expr of_first = ir::Substitute(ir::Substitute(first, lets_), {{ir::kLaneVar, lane}});
  ir::Linear place = ir::ToLinear(ir::Simplify(of_first, ranges_), ranges_);
  const int64_t behind = place.constant * size % kUnit == 0 ? std::exchange(place.constant, 0) : 0;
  llvm::Type* const word = builder_.getInt32Ty();
  const auto number = [&](int64_t n) { return builder_.getInt32(static_cast<uint32_t>(n)); };
  llvm::Value* const bytes =
      builder_.CreateMul(builder_.CreateTrunc(EmitExpr(ir::FromLinear(place)), word), number(size));
  llvm::Value* const begin = builder_.CreateAdd(builder_.CreatePtrToInt(places_.at(buffer.get()).pointer, word), bytes);
  const auto units = [&](int64_t elements) { return elements * size / kUnit; };
  llvm::Value* const low = builder_.CreateAdd(builder_.CreateLShr(begin, std::countr_zero<uint64_t>(kUnit)),
                                              number(units(behind) + (units(operand.apart) << 16)));
  const bool swizzled = buffer->scope == ir::Scope::kSwizzled;  // which the instruction does
  const uint64_t high = static_cast<uint64_t>(units(blocks_apart)) << 32 | uint64_t{swizzled} << 62;
  return builder_.CreateOr(builder_.CreateZExt(low, builder_.getInt64Ty()), builder_.getInt64(high));
}

// What a lane has of a, which is that of all products: of its two rows, of the first chunk and the second, one number
// each. In the bits behind those that count is something.
Values Emitter::LoadRounded(const Product& product) {
  const ir::MatrixOperand& a = product.contract->a;
  const ir::Buffer& buffer = BufferOf(a);
  const ir::TensorInstructionEntry& entry = EntryOf(product.contract->instruction);
  const ir::Expr own = product.a + ir::FloorMod(ir::MakeVar(ir::kLaneVar), ir::Expr(ir::kLanesOfRow));
  Values factors;
  for (const int64_t behind : {int64_t{0}, a.stride, a.apart, a.stride + a.apart}) {
    const ir::Expr place = ir::Simplify(own + ir::Expr(behind), ranges_);
    auto* const load = builder_.CreateLoad(builder_.getFloatTy(), Address(buffer, place, builder_.getFloatTy()));
    Annotate(load, buffer.get());
    factors.push_back(EmitHalfMore(builder_, load, entry.fraction_bits));
  }
  return factors;
}

// The text of all instructions; what it takes beside sums, registers and descriptors, are `factors`.
std::string Emitter::SpellProducts(std::span<const Product> products, const std::map<int64_t, size_t>& registers,
                                   Values* factors) {
  const auto take = [&](llvm::Value* factor) {
    factors->push_back(factor);
    return fmt::format("${}", 2 * registers.size() + factors->size() - 1);
  };
  std::string loaded;
  if (EntryOf(products[0].contract->instruction).loads_a) {
    for (llvm::Value* factor : LoadRounded(products[0])) loaded += (loaded.empty() ? "{" : ", ") + take(factor);
    loaded += "}";
  }
  std::string text = "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned;\n";
  for (size_t begin = 0; begin < products.size();) {
    const auto [count, apart] = Together(products.subspan(begin));
    const ir::Contract& contract = *products[begin].contract;
    const ir::TensorInstructionEntry& entry = EntryOf(contract.instruction);
    std::string sums;
    for (const Product& product : products.subspan(begin, count)) {
      for (const int64_t place : product.sums)
        sums += fmt::format("{}${}", sums.empty() ? "" : ", ", registers.at(place));
    }
    const std::string a =
        entry.loads_a ? loaded : take(EmitDescriptor(contract.a, products[begin].a, contract.a.stride));
    const std::string b = take(EmitDescriptor(contract.b, products[begin].b, apart));
    const auto [types, signs] = SpellingOf(contract.instruction);
    text += fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{} {{{}}}, {}, {}, p, {};\n",
                        static_cast<int64_t>(count) * kColumns, entry.k, types, sums, a, b, signs);
    begin += count;
  }
  return text + "}";
}

// Assembly that changes the sums, and takes `more`; the sums after it.
Values Emitter::EmitOnSums(const std::string& text, const Values& sums, std::span<llvm::Value* const> more) {
  Values arguments = sums;
  arguments.insert(arguments.end(), more.begin(), more.end());
  llvm::Type* const changed =
      llvm::StructType::get(context_, std::vector<llvm::Type*>(sums.size(), builder_.getFloatTy()));
  llvm::Value* const call = EmitAssembly(text, arguments, sums.empty() ? nullptr : changed);
  Values after;
  for (unsigned i = 0; i < sums.size(); ++i) after.push_back(builder_.CreateExtractValue(call, i));
  return after;
}

// Whether they are begun at once: lanes load of one place what an instruction does not read itself, while those before
// it run.
bool Emitter::GoTogether(const Product& x, const Product& y) {
  const bool loads = EntryOf(x.contract->instruction).loads_a || EntryOf(y.contract->instruction).loads_a;
  return SumOf(x) == SumOf(y) && ir::Equal(x.sum, y.sum) && (!loads || ShareRows(x, y));
}

// All of them at once: they add to the same buffer, from the same place on.
void Emitter::BeginProducts(std::span<const Product> products) {
  Sums sums{SumOf(products[0]), products[0].sum, {}};
  for (const Product& product : products) sums.places.insert(product.sums.begin(), product.sums.end());
  std::map<int64_t, size_t> registers;
  for (const int64_t place : sums.places) registers.try_emplace(place, registers.size());
  Values factors;
  const std::string text = SpellProducts(products, registers, &factors);
  Values places;
  const Values values = EmitOnSums(text, LoadSums(sums, &places), factors);
  StoreSums(sums, values, places);
  const auto same = std::ranges::find_if(
      running_, [&](const Sums& other) { return other.buffer == sums.buffer && ir::Equal(other.first, sums.first); });
  if (same == running_.end()) {
    running_.push_back(std::move(sums));
  } else {
    same->places.merge(sums.places);
  }
  emitted_.clear();
}

Values Emitter::LoadSums(const Sums& sums, Values* places) {
  llvm::Value* const first = Address(sums.buffer, sums.first, builder_.getFloatTy());
  Values values;
  for (const int64_t place : sums.places) {
    places->push_back(builder_.CreateConstGEP1_64(builder_.getFloatTy(), first, static_cast<uint64_t>(place)));
    auto* const load = builder_.CreateLoad(builder_.getFloatTy(), places->back());
    Annotate(load, sums.buffer.get());
    values.push_back(load);
  }
  return values;
}

void Emitter::StoreSums(const Sums& sums, std::span<llvm::Value* const> values, std::span<llvm::Value* const> places) {
  for (size_t i = 0; i < places.size(); ++i) {
    Annotate(builder_.CreateStore(values[i], places[i]), sums.buffer.get());
  }
}

// Ends the bundle of what was begun. ptxas ends one wherever a branch follows its instructions, and takes a commit
// behind that for another, empty one: a lane then waits for the bundle that it meant to leave running.
void Emitter::CommitProducts() { EmitAssembly("wgmma.commit_group.sync.aligned;", {}); }

// Of bundles that are committed. Sums that are there now pass through the wait, so that nobody reads them before it.
// Those that may not be are registers that nothing touches.
void Emitter::EmitSettle(const ir::Settle& settle) {
  const std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", settle.running);
  if (settle.running > 0) {
    EmitAssembly(text, {});
    return;
  }
  Values values, places;
  for (const Sums& sums : running_) std::ranges::copy(LoadSums(sums, &places), std::back_inserter(values));
  values = EmitOnSums(text, values, {});
  size_t from = 0;
  for (const Sums& sums : std::exchange(running_, {})) {
    const size_t count = sums.places.size();
    StoreSums(sums, std::span(values).subspan(from, count), std::span(places).subspan(from, count));
    from += count;
  }
  emitted_.clear();
}

// Nothing that products read may be copied to before they are there, nor what they add to be read: copies that begin
// before them may as well begin after, while the instructions run. Until then other groups may be on their way to the
// barrier in front. A settle that follows ends the products' bundle before.
size_t Emitter::EmitProducts(std::span<const ir::Stmt> stmts) {
  if (!has_products_) return 0;
  const auto copies = stmts.begin() + (stmts[0].As<ir::Barrier>() != nullptr ? 1 : 0);
  const auto begin = std::find_if_not(copies, stmts.end(), IsCopies);
  const auto end = std::find_if_not(begin, stmts.end(), IsProducts);
  if (begin == end) return 0;
  if (copies != stmts.begin()) MeetGroup();
  std::vector<Product> products;
  for (auto s = begin; s != end; ++s) GatherProducts(*s, &products);
  for (std::span<const Product> left = products; !left.empty();) {
    const auto other = std::ranges::find_if(left, [&](const Product& p) { return !GoTogether(p, left[0]); });
    const auto count = static_cast<size_t>(other - left.begin());
    BeginProducts(left.first(count));
    left = left.subspan(count);
  }
  const ir::Settle* const settle = end == stmts.end() ? nullptr : end->As<ir::Settle>();
  if (settle != nullptr) CommitProducts();
  if (copies != stmts.begin()) AwaitGroups();
  for (auto s = copies; s != begin; ++s) EmitStmt(*s);
  if (settle != nullptr) EmitSettle(*settle);
  return static_cast<size_t>(end - stmts.begin()) + (settle != nullptr ? 1 : 0);
}

}  // namespace hone::codegen
