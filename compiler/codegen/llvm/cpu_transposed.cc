// SPDX-License-Identifier: Apache-2.0
// Strided loads of neighbouring stores, as contiguous loads and shuffles.
//
// Unrolled stores of a transposition read x[b + r + lane * stride], r = 0, 1, ...: each is a gather, and together they
// want exactly a block of memory whose rows, one per lane, are contiguous. The rows are loaded whole, and the block is
// transposed in registers: 6 to 10 times as fast on CPUs with vectors of 16 floats.
#include <algorithm>
#include <bit>

#include "compiler/codegen/llvm/cpu_emitter.h"
#include "compiler/ir/match.h"

namespace hone::codegen {
namespace {

constexpr int kTransposedLoadsMax = 2;  // per store: each keeps a block of registers

// Finds the strided loads that e always makes: without a mask, and in no arm of a select.
void FindStrided(const ir::Expr& e, const ir::Ranges& ranges, std::vector<const ir::Load*>* found) {
  if (e.As<ir::Select>() != nullptr) return;
  if (const ir::Load* load = e.As<ir::Load>()) {
    const ir::Ramp* ramp = load->indices[0].As<ir::Ramp>();
    if (ramp == nullptr || load->mask.defined() || !std::has_single_bit(static_cast<unsigned>(ramp->width))) return;
    if (ir::BoundsOf(ramp->stride, ranges).low > CpuEmitter::kShuffledStrideMax) found->push_back(load);
    return;
  }
  ir::ForEachChild(e, [&](const ir::Expr& child) { FindStrided(child, ranges, found); });
}

const ir::Ramp& RampOf(const ir::Load& load) { return *load.indices[0].As<ir::Ramp>(); }

// Whether `load` reads the elements `distance` after those that `first` reads.
bool IsNextTo(const ir::Load& load, const ir::Load& first, int64_t distance, const ir::Ranges& ranges) {
  const ir::Ramp& a = RampOf(first);
  const ir::Ramp& b = RampOf(load);
  return load.buffer == first.buffer && ir::Equal(a.stride, b.stride) && a.width == b.width &&
         ir::ConstantValue(b.base - a.base, ranges) == distance;
}

// rows[i][j] becomes rows[j][i], by exchanging ever smaller blocks off the diagonal. There are as many rows as elements
// in each.
void Transpose(llvm::IRBuilder<>& builder, Values* rows) {
  const size_t n = rows->size();
  std::vector<int> picks[2] = {std::vector<int>(n), std::vector<int>(n)};
  for (size_t d = n / 2; d > 0; d /= 2) {
    for (size_t j = 0; j < n; ++j) {
      const bool second = (j & d) != 0;
      picks[0][j] = static_cast<int>(second ? n + j - d : j);
      picks[1][j] = static_cast<int>(second ? n + j : j + d);
    }
    for (size_t i = 0; i < n; ++i) {
      if ((i & d) != 0) continue;
      llvm::Value *a = (*rows)[i], *b = (*rows)[i + d];
      (*rows)[i] = builder.CreateShuffleVector(a, b, picks[0]);
      (*rows)[i + d] = builder.CreateShuffleVector(a, b, picks[1]);
    }
  }
}

}  // namespace

// Loads the block that `loads` are the first columns of, and transposes it. Columns that no load wants are masked.
void CpuEmitter::LoadTransposed(const std::vector<const ir::Load*>& loads) {
  const ir::Load& first = *loads[0];
  const ir::Ramp& ramp = RampOf(first);
  llvm::Type* element = MemoryTypeOf(first.buffer->dtype);
  llvm::FixedVectorType* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(ramp.width));
  const llvm::Align align(ir::SizeOf(first.buffer->dtype));
  std::vector<llvm::Constant*> wanted;
  for (size_t i = 0; i < static_cast<size_t>(ramp.width); ++i) wanted.push_back(builder_.getInt1(i < loads.size()));
  llvm::Value* address = Address(first.buffer, ramp.base, element);
  const std::optional<int64_t> fixed = ir::ConstantValue(ramp.stride);
  llvm::Value* const stride = fixed.has_value() ? nullptr : EmitExpr(ramp.stride);
  Values rows;
  for (int lane = 0; lane < ramp.width; ++lane) {
    llvm::Value* const place = stride == nullptr
                                   ? builder_.getInt64(static_cast<uint64_t>(lane * *fixed))
                                   : builder_.CreateMul(stride, builder_.getInt64(static_cast<uint64_t>(lane)));
    llvm::Value* const row = builder_.CreateInBoundsGEP(element, address, place);
    llvm::Instruction* access = nullptr;
    if (loads.size() == wanted.size()) {
      access = builder_.CreateAlignedLoad(vector, row, align);
    } else {
      access = builder_.CreateMaskedLoad(vector, row, align, llvm::ConstantVector::get(wanted));
    }
    Annotate(access, first.buffer.get());
    rows.push_back(access);
  }
  Transpose(builder_, &rows);
  for (size_t i = 0; i < loads.size(); ++i) transposed_[loads[i]] = rows[i];
}

// Makes the strided loads of the longest prefix of stmts that are stores which read side by side. Returns its length, 0
// if it is shorter than 2. EmitVectorLoad finds the loads in transposed_.
size_t CpuEmitter::EmitTransposedLoads(std::span<const ir::Stmt> stmts) {
  transposed_.clear();
  std::vector<std::vector<const ir::Load*>> columns;  // per load of the first store: it and those that follow it
  size_t count = 0;
  for (const ir::Stmt& s : stmts) {
    const ir::Store* store = s.As<ir::Store>();
    if (store == nullptr) break;
    std::vector<const ir::Load*> loads;
    FindStrided(store->value, ranges_, &loads);
    if (count == 0) columns.resize(loads.size());
    if (loads.empty() || loads.size() > kTransposedLoadsMax || loads.size() != columns.size()) break;
    bool fits = true;
    for (size_t i = 0; i < loads.size(); ++i) {
      fits = fits && loads[i]->buffer != store->buffer && count < static_cast<size_t>(RampOf(*loads[i]).width) &&
             (count == 0 || IsNextTo(*loads[i], *columns[i][0], static_cast<int64_t>(count), ranges_));
    }
    if (!fits) break;
    for (size_t i = 0; i < loads.size(); ++i) columns[i].push_back(loads[i]);
    ++count;
  }
  if (count < 2) return 0;
  ForgetValues();
  for (const auto& column : columns) LoadTransposed(column);
  return count;
}

void CpuEmitter::EmitBlock(const ir::Block& block) {
  const std::span<const ir::Stmt> stmts = block.stmts;
  for (size_t i = 0, next = 0; i < stmts.size(); ++i) {
    if (i >= next) next = i + std::max<size_t>(1, EmitTransposedLoads(stmts.subspan(i)));
    EmitStmt(stmts[i]);
  }
  transposed_.clear();
}

llvm::Value* CpuEmitter::EmitVectorLoad(const ir::Load& load, llvm::Type* element, llvm::FixedVectorType* vector) {
  if (const auto made = transposed_.find(&load); made != transposed_.end()) return made->second;
  return FuncEmitter::EmitVectorLoad(load, element, vector);
}

}  // namespace hone::codegen
