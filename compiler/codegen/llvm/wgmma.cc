// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/wgmma.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>

#include "compiler/codegen/llvm/ptx_emitter.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

constexpr int64_t kColumnsMax = 256;  // of one instruction
constexpr int64_t kColumns = 8;       // of one block of them
constexpr int64_t kUnit = 16;         // bytes in which a descriptor counts
constexpr int64_t kWarpLanes = ir::kLanesOfRow * ir::kBlockRows;
constexpr int64_t kWarpgroupLanes = 128;  // lanes that run an instruction together: four warps
// The number of the lane's warpgroup. No Var of a func has a line break in its name.
constexpr const char kWarpgroup[] = "lane\nwarpgroup";

bool IsWgmma(const ir::Mma& mma) { return EntryOf(mma.instruction).is_async; }

const ir::Buffer& BufferOf(const ir::MatrixOperand& operand) { return operand.first.As<ir::Load>()->buffer; }

// Whether s is nothing but such instructions, and loops around them that are unrolled.
bool HasOnlyProducts(const ir::Stmt& s) {
  if (const ir::Mma* mma = s.As<ir::Mma>()) return IsWgmma(*mma);
  if (const ir::For* loop = s.As<ir::For>()) {
    return loop->kind == ir::LoopKind::kUnrolled && HasOnlyProducts(loop->body);
  }
  const ir::Block* block = s.As<ir::Block>();
  return block != nullptr && !block->stmts.empty() && std::ranges::all_of(block->stmts, HasOnlyProducts);
}

// Whether s only begins and commits copies.
bool HasOnlyCopies(const ir::Stmt& s) {
  if (s.As<ir::Copy>() != nullptr || s.As<ir::Commit>() != nullptr) return true;
  const bool around = s.As<ir::For>() != nullptr || s.As<ir::If>() != nullptr || s.As<ir::Block>() != nullptr;
  bool copies = around;
  if (around) {
    ir::ForEachChild(
        s, [&](const ir::Stmt& child) { copies = copies && HasOnlyCopies(child); }, [](const ir::Expr&) {});
  }
  return copies;
}

// How the instruction names the types of a and b, and its flags: signs and, for 16-bit types, that rows are contiguous.
struct FactorSpelling {
  std::string_view types, flags;
};

FactorSpelling SpellingOf(ir::TensorInstruction instruction) {
  if (ir::EntryOf(instruction).a == ir::DType::kFloat32) return {"tf32.tf32", "1, 1"};
  return {instruction == ir::TensorInstruction::kWgmmaBf16 ? "bf16.bf16" : "f16.f16", "1, 1, 0, 0"};
}

bool HasProducts(const ir::Stmt& s) {
  return ir::AnyStmt(s, [](const ir::Stmt& x) {
    const ir::Mma* mma = x.As<ir::Mma>();
    return mma != nullptr && IsWgmma(*mma);
  });
}

}  // namespace

// One Mma. Indices are flat; variables of unrolled loops are constants in them.
struct Wgmma::Product {
  const ir::Mma* mma;
  ir::Expr a, b, sum;         // where the operands begin
  std::vector<int64_t> sums;  // the accumulators in the order of the instruction, relative to `sum`
};

Wgmma::Wgmma(PtxEmitter& emitter, const ir::Func& func)
    : emitter_(emitter), builder_(emitter.builder()), has_products_(HasProducts(func.body)) {}

const ir::Buffer& Wgmma::SumOf(const Product& product) { return BufferOf(product.mma->sum); }

// Appends the Mmas in s, in order; loops around them are unrolled.
void Wgmma::CollectProducts(const ir::Stmt& s, std::vector<Product>* products) {
  if (const ir::For* loop = s.As<ir::For>()) {
    return emitter_.ForEachIteration(*loop, [&] { CollectProducts(loop->body, products); });
  }
  if (const ir::Block* block = s.As<ir::Block>()) {
    for (const ir::Stmt& stmt : block->stmts) CollectProducts(stmt, products);
    return;
  }
  const ir::Mma& mma = *s.As<ir::Mma>();
  const auto known = [&](const ir::MatrixOperand& operand) {
    return ir::Simplify(emitter_.WithUnrolled(operand.first.As<ir::Load>()->indices[0]), emitter_.ranges());
  };
  ir::Linear sum = ir::ToLinear(known(mma.sum), emitter_.ranges());
  const int64_t first = std::exchange(sum.constant, 0);
  Product product{&mma, known(mma.a), known(mma.b), ir::FromLinear(sum), {}};
  for (const int64_t row : {int64_t{0}, mma.sum.stride}) {
    product.sums.insert(product.sums.end(), {first + row, first + row + 1});
  }
  products->push_back(std::move(product));
}

// Whether both have the same instruction and the same operand a.
bool Wgmma::HaveSameOperandA(const Product& x, const Product& y) {
  const ir::Mma &c = *x.mma, &d = *y.mma;
  return c.instruction == d.instruction && c.a.stride == d.a.stride && c.a.column_stride == d.a.column_stride &&
         BufferOf(c.a) == BufferOf(d.a) && ir::Equal(x.a, y.a);
}

// The number of the lane's warpgroup, as a value that ptxas sees to be the same in all lanes of a warp. Emitted before
// all else, once.
void Wgmma::Begin() {
  if (!has_products_ || emitter_.func().grid.lanes <= kWarpgroupLanes) return;
  llvm::Value* const own = builder_.CreateTrunc(
      builder_.CreateLShr(emitter_.variables().at(ir::kLaneVar), std::countr_zero<uint64_t>(kWarpgroupLanes)),
      builder_.getInt32Ty());
  llvm::Value* const common =
      builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
                               {builder_.getInt32(~0U), own, builder_.getInt32(0), builder_.getInt32(kWarpLanes - 1)});
  emitter_.ranges()[kWarpgroup] = {0, emitter_.func().grid.lanes / kWarpgroupLanes - 1};
  emitter_.variables()[kWarpgroup] = builder_.CreateZExt(common, builder_.getInt64Ty());
}

// How many of the products, from the first on, are one instruction, and how many elements apart their columns lie.
std::pair<size_t, int64_t> Wgmma::CountJoinedProducts(std::span<const Product> products) const {
  const Product& first = products[0];
  int64_t column_stride = kColumns * first.mma->b.stride;
  size_t count = 1;
  for (; count < products.size() && static_cast<int64_t>(count) < kColumnsMax / kColumns; ++count) {
    const Product &next = products[count], &before = products[count - 1];
    const ir::Mma &c = *next.mma, &d = *first.mma;
    const bool alike =
        HaveSameOperandA(next, first) && c.b.column_stride == d.b.column_stride && BufferOf(c.b) == BufferOf(d.b);
    if (!alike || SumOf(next) != SumOf(first)) break;
    const bool again = std::ranges::any_of(products.first(count), [&](const Product& p) {
      return std::ranges::find_first_of(p.sums, next.sums) != p.sums.end();
    });
    const std::optional<int64_t> step = ir::ConstantValue(next.b - before.b, emitter_.ranges());
    if (again || !step.has_value() || *step <= 0 || (count > 1 && *step != column_stride)) break;
    column_stride = *step;
  }
  return {count, column_stride};
}

// The descriptor of an operand, in units of 16 bytes: where the first row or column of all lanes lies (that of the
// first lane), the distance of chunks and of blocks, and whether rows are swizzled. It must be the same in all lanes;
// if ptxas sees that it is, it takes registers once per warp. Descriptors of operands at a constant distance differ by
// one addition.
llvm::Value* Wgmma::EmitDescriptor(const ir::MatrixOperand& operand, const ir::Expr& first, int64_t blocks_apart) {
  const ir::Buffer& buffer = BufferOf(operand);
  const int64_t size = ir::SizeOf(buffer->dtype);
  const ir::Expr lane =
      emitter_.func().grid.lanes > kWarpgroupLanes ? ir::MakeVar(kWarpgroup) * ir::Expr(kWarpgroupLanes) : ir::Expr(0);
  const ir::Expr of_first = ir::Substitute(ir::Substitute(first, emitter_.lets()), {{ir::kLaneVar, lane}});
  ir::Linear place = ir::ToLinear(ir::Simplify(of_first, emitter_.ranges()), emitter_.ranges());
  const int64_t behind = place.constant * size % kUnit == 0 ? std::exchange(place.constant, 0) : 0;
  llvm::Type* const word = builder_.getInt32Ty();
  const auto number = [&](int64_t n) { return builder_.getInt32(static_cast<uint32_t>(n)); };
  llvm::Value* const bytes =
      builder_.CreateMul(builder_.CreateTrunc(emitter_.EmitExpr(ir::FromLinear(place)), word), number(size));
  llvm::Value* const begin =
      builder_.CreateAdd(builder_.CreatePtrToInt(emitter_.places().at(buffer.get()).pointer, word), bytes);
  const auto units = [&](int64_t elements) { return elements * size / kUnit; };
  llvm::Value* const low = builder_.CreateAdd(builder_.CreateLShr(begin, std::countr_zero<uint64_t>(kUnit)),
                                              number(units(behind) + (units(operand.column_stride) << 16)));
  const bool swizzled = buffer->scope == ir::Scope::kSwizzled;  // the instruction undoes it
  const uint64_t high = static_cast<uint64_t>(units(blocks_apart)) << 32 | uint64_t{swizzled} << 62;
  return builder_.CreateOr(builder_.CreateZExt(low, builder_.getInt64Ty()), builder_.getInt64(high));
}

// A lane's part of operand a, the same for all products: of its two rows one number each of the first chunk and of the
// second. They are rounded to the instruction's precision: the bits behind it are not zero.
Values Wgmma::LoadRows(const Product& product) {
  const ir::MatrixOperand& a = product.mma->a;
  const ir::Buffer& buffer = BufferOf(a);
  const ir::TensorInstructionEntry& entry = EntryOf(product.mma->instruction);
  const ir::Expr own = product.a + ir::FloorMod(ir::MakeVar(ir::kLaneVar), ir::Expr(ir::kLanesOfRow));
  Values factors;
  for (const int64_t behind : {int64_t{0}, a.stride, a.column_stride, a.stride + a.column_stride}) {
    const ir::Expr place = ir::Simplify(own + ir::Expr(behind), emitter_.ranges());
    auto* const load =
        builder_.CreateLoad(builder_.getFloatTy(), emitter_.Address(buffer, place, builder_.getFloatTy()));
    emitter_.Annotate(load, buffer.get());
    factors.push_back(EmitRoundedBeforeTruncation(builder_, load, entry.fraction_bits));
  }
  return factors;
}

// The text of all instructions. Appends to `factors` what it takes beside the sums: registers and descriptors.
std::string Wgmma::ProductAssembly(std::span<const Product> products, const std::map<int64_t, size_t>& registers,
                                   Values* factors) {
  const auto take = [&](llvm::Value* factor) {
    factors->push_back(factor);
    return fmt::format("${}", 2 * registers.size() + factors->size() - 1);
  };
  std::string loaded;
  if (EntryOf(products[0].mma->instruction).loads_a) {
    for (llvm::Value* factor : LoadRows(products[0])) loaded += (loaded.empty() ? "{" : ", ") + take(factor);
    loaded += "}";
  }
  std::string text = "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned;\n";
  for (size_t begin = 0; begin < products.size();) {
    const auto [count, column_stride] = CountJoinedProducts(products.subspan(begin));
    const ir::Mma& mma = *products[begin].mma;
    const ir::TensorInstructionEntry& entry = EntryOf(mma.instruction);
    std::string sums;
    for (const Product& product : products.subspan(begin, count)) {
      for (const int64_t place : product.sums)
        sums += fmt::format("{}${}", sums.empty() ? "" : ", ", registers.at(place));
    }
    const std::string a = entry.loads_a ? loaded : take(EmitDescriptor(mma.a, products[begin].a, mma.a.stride));
    const std::string b = take(EmitDescriptor(mma.b, products[begin].b, column_stride));
    const auto [types, flags] = SpellingOf(mma.instruction);
    text += fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{} {{{}}}, {}, {}, p, {};\n",
                        static_cast<int64_t>(count) * kColumns, entry.k, types, sums, a, b, flags);
    begin += count;
  }
  return text + "}";
}

// Assembly that changes the sums and takes `more`. Returns the sums after it.
Values Wgmma::EmitOnAccumulators(const std::string& text, const Values& sums, std::span<llvm::Value* const> more) {
  Values arguments = sums;
  arguments.insert(arguments.end(), more.begin(), more.end());
  llvm::Type* const changed =
      llvm::StructType::get(builder_.getContext(), std::vector<llvm::Type*>(sums.size(), builder_.getFloatTy()));
  llvm::Value* const call = emitter_.EmitAssembly(text, arguments, sums.empty() ? nullptr : changed);
  Values after;
  for (unsigned i = 0; i < sums.size(); ++i) after.push_back(builder_.CreateExtractValue(call, i));
  return after;
}

// Whether both are begun at once. Operands that lanes load are loaded for one place at a time, while the instructions
// before run.
bool Wgmma::CanIssueTogether(const Product& x, const Product& y) {
  const bool loads = EntryOf(x.mma->instruction).loads_a || EntryOf(y.mma->instruction).loads_a;
  return SumOf(x) == SumOf(y) && ir::Equal(x.sum, y.sum) && (!loads || HaveSameOperandA(x, y));
}

// Begins all products at once: they add to the same buffer, from the same element on.
void Wgmma::IssueProducts(std::span<const Product> products) {
  Accumulators sums{SumOf(products[0]), products[0].sum, {}};
  for (const Product& product : products) sums.places.insert(product.sums.begin(), product.sums.end());
  std::map<int64_t, size_t> registers;
  for (const int64_t place : sums.places) registers.try_emplace(place, registers.size());
  Values factors;
  const std::string text = ProductAssembly(products, registers, &factors);
  Values places;
  const Values values = EmitOnAccumulators(text, LoadAccumulators(sums, &places), factors);
  StoreAccumulators(sums, values, places);
  const auto same = std::ranges::find_if(running_, [&](const Accumulators& other) {
    return other.buffer == sums.buffer && ir::Equal(other.first, sums.first);
  });
  if (same == running_.end()) {
    running_.push_back(std::move(sums));
  } else {
    same->places.merge(sums.places);
  }
  emitter_.ForgetValues();
}

Values Wgmma::LoadAccumulators(const Accumulators& sums, Values* places) {
  llvm::Value* const first = emitter_.Address(sums.buffer, sums.first, builder_.getFloatTy());
  Values values;
  for (const int64_t place : sums.places) {
    places->push_back(builder_.CreateConstGEP1_64(builder_.getFloatTy(), first, static_cast<uint64_t>(place)));
    auto* const load = builder_.CreateLoad(builder_.getFloatTy(), places->back());
    emitter_.Annotate(load, sums.buffer.get());
    values.push_back(load);
  }
  return values;
}

void Wgmma::StoreAccumulators(const Accumulators& sums, std::span<llvm::Value* const> values,
                              std::span<llvm::Value* const> places) {
  for (size_t i = 0; i < places.size(); ++i) {
    emitter_.Annotate(builder_.CreateStore(values[i], places[i]), sums.buffer.get());
  }
}

// ptxas ends the commit group wherever a branch follows its instructions. A commit behind the branch would be another,
// empty group, and a lane would wait for the group that it meant to leave running.
void Wgmma::EmitCommit() { emitter_.EmitAssembly("wgmma.commit_group.sync.aligned;", {}); }

// A wait for all passes the accumulators through the assembly, so that no read of them moves before it. A wait that
// leaves some running touches no accumulator.
void Wgmma::EmitWait(const ir::MmaWait& wait) {
  const std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", wait.pending);
  if (wait.pending > 0) {
    emitter_.EmitAssembly(text, {});
    return;
  }
  Values values, places;
  for (const Accumulators& sums : running_)
    std::ranges::copy(LoadAccumulators(sums, &places), std::back_inserter(values));
  values = EmitOnAccumulators(text, values, {});
  size_t from = 0;
  for (const Accumulators& sums : std::exchange(running_, {})) {
    const size_t count = sums.places.size();
    StoreAccumulators(sums, std::span(values).subspan(from, count), std::span(places).subspan(from, count));
    from += count;
  }
  emitter_.ForgetValues();
}

// Copies must not overwrite what products read before they have read it, so copies that stand before the products are
// begun after them and run beside them; other groups may reach the barrier in front meanwhile. The commit group is
// ended before the copies, because they are branches.
size_t Wgmma::EmitProducts(std::span<const ir::Stmt> stmts) {
  if (!has_products_) return 0;
  const auto copies = stmts.begin() + (stmts[0].As<ir::Barrier>() != nullptr ? 1 : 0);
  const auto begin = std::find_if_not(copies, stmts.end(), HasOnlyCopies);
  const auto end = std::find_if_not(begin, stmts.end(), HasOnlyProducts);
  if (begin == end) return 0;
  if (copies != stmts.begin()) emitter_.SyncGroupAndArrive();
  std::vector<Product> products;
  for (auto s = begin; s != end; ++s) CollectProducts(*s, &products);
  for (std::span<const Product> left = products; !left.empty();) {
    const auto other = std::ranges::find_if(left, [&](const Product& p) { return !CanIssueTogether(p, left[0]); });
    const auto count = static_cast<size_t>(other - left.begin());
    IssueProducts(left.first(count));
    left = left.subspan(count);
  }
  const ir::MmaWait* const wait = end == stmts.end() ? nullptr : end->As<ir::MmaWait>();
  if (wait != nullptr) EmitCommit();
  if (copies != stmts.begin()) emitter_.WaitForSharingGroups();
  for (auto s = copies; s != begin; ++s) emitter_.EmitStmt(*s);
  if (wait != nullptr) EmitWait(*wait);
  return static_cast<size_t>(end - stmts.begin()) + (wait != nullptr ? 1 : 0);
}

}  // namespace hone::codegen
