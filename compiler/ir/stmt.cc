// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/stmt.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "compiler/ir/typing.h"

namespace hone::ir {
namespace {

template <typename Node>
Stmt MakeNode(Node node) {
  return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(node)}));
}

bool EqualStmts(const For& a, const For& b) {
  return a.var == b.var && a.kind == b.kind && Equal(a.extent, b.extent) && Equal(a.body, b.body);
}
bool EqualStmts(const Store& a, const Store& b) {
  return a.buffer == b.buffer && Equal(a.indices, b.indices) && Equal(a.value, b.value) && Equal(a.mask, b.mask);
}
bool EqualStmts(const Block& a, const Block& b) {
  return a.name == b.name && std::equal(a.stmts.begin(), a.stmts.end(), b.stmts.begin(), b.stmts.end(),
                                        [](const Stmt& x, const Stmt& y) { return Equal(x, y); });
}
bool EqualStmts(const If& a, const If& b) {
  return Equal(a.condition, b.condition) && Equal(a.then_case, b.then_case) && Equal(a.else_case, b.else_case);
}
bool EqualStmts(const Alloc& a, const Alloc& b) { return a.buffer == b.buffer && Equal(a.body, b.body); }
bool EqualStmts(const Let& a, const Let& b) {
  return a.var == b.var && Equal(a.value, b.value) && Equal(a.body, b.body);
}
bool EqualStmts(const Barrier&, const Barrier&) { return true; }
bool Equal(const MatrixOperand& a, const MatrixOperand& b) {
  return a.stride == b.stride && a.column_stride == b.column_stride && ir::Equal(a.first, b.first);
}
bool EqualStmts(const Mma& a, const Mma& b) {
  return a.instruction == b.instruction && Equal(a.sum, b.sum) && Equal(a.a, b.a) && Equal(a.b, b.b);
}
bool EqualStmts(const MmaWait& a, const MmaWait& b) { return a.pending == b.pending; }
bool EqualStmts(const Copy& a, const Copy& b) {
  return a.buffer == b.buffer && a.count == b.count && Equal(a.indices, b.indices) && Equal(a.source, b.source) &&
         Equal(a.mask, b.mask) && a.groups == b.groups;
}
bool EqualStmts(const Commit&, const Commit&) { return true; }
bool EqualStmts(const Wait& a, const Wait& b) { return a.pending == b.pending; }
bool EqualStmts(const LaneReduce& a, const LaneReduce& b) {
  return a.reduction == b.reduction && a.parts == b.parts && Equal(a.place, b.place) && Equal(a.mask, b.mask) &&
         Equal(a.part, b.part) && Equal(a.value, b.value);
}
bool EqualStmts(const Prefetch& a, const Prefetch& b) {
  return a.buffer == b.buffer && a.count == b.count && Equal(a.first, b.first);
}

}  // namespace

bool Equal(const Stmt& a, const Stmt& b) {
  if (a.SameHandle(b)) return true;
  if (!a.defined() || !b.defined()) return false;
  return std::visit(
      [&](const auto& node) {
        const auto* other = b.As<std::decay_t<decltype(node)>>();
        return other != nullptr && EqualStmts(node, *other);
      },
      a.node().value);
}

Stmt MakeFor(std::string var, Expr extent, LoopKind kind, Stmt body) {
  HONE_CHECK(extent.type() == kIndexType);
  HONE_CHECK(body.defined());
  return MakeNode(For{std::move(var), std::move(extent), kind, std::move(body)});
}

Stmt MakeStore(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask) {
  HONE_CHECK(buffer != nullptr);
  HONE_CHECK(AccessType(*buffer, indices, mask) == value.type());
  return MakeNode(Store{std::move(buffer), std::move(indices), std::move(value), std::move(mask)});
}

Stmt MakeBlock(std::vector<Stmt> stmts, std::string name) {
  for (const Stmt& s : stmts) HONE_CHECK(s.defined());
  if (stmts.size() == 1 && name.empty()) return stmts[0];
  return MakeNode(Block{std::move(name), std::move(stmts)});
}

Stmt MakeIf(Expr condition, Stmt then_case, Stmt else_case) {
  HONE_CHECK(condition.type() == kBoolType);
  HONE_CHECK(then_case.defined());
  return MakeNode(If{std::move(condition), std::move(then_case), std::move(else_case)});
}

Stmt MakeAlloc(Buffer buffer, Stmt body) {
  HONE_CHECK(buffer != nullptr && buffer->scope != Scope::kParam);
  HONE_CHECK(body.defined());
  return MakeNode(Alloc{std::move(buffer), std::move(body)});
}

Stmt MakeLet(std::string var, Expr value, Stmt body) {
  HONE_CHECK(value.defined() && body.defined());
  return MakeNode(Let{std::move(var), std::move(value), std::move(body)});
}

Stmt MakeBarrier() { return MakeNode(Barrier{}); }

Stmt MakeMma(TensorInstruction instruction, MatrixOperand sum, MatrixOperand a, MatrixOperand b) {
  for (const MatrixOperand* operand : {&sum, &a, &b}) {
    const Load* load = operand->first.As<Load>();
    HONE_CHECK(load != nullptr && !load->mask.defined() && operand->first.type().width == 1);
  }
  return MakeNode(Mma{instruction, std::move(sum), std::move(a), std::move(b)});
}

Stmt MakeCopy(Buffer buffer, std::vector<Expr> indices, Expr source, Expr mask, int64_t count, int64_t groups) {
  const Load* load = source.As<Load>();
  HONE_CHECK(buffer != nullptr && load != nullptr && !load->mask.defined());
  HONE_CHECK(AccessType(*buffer, indices, {}) == source.type() && source.type().width == 1);
  HONE_CHECK(!mask.defined() || mask.type() == kBoolType);
  if (const IntImm* always = mask.As<IntImm>(); always != nullptr && always->value != 0) mask = {};
  return MakeNode(Copy{std::move(buffer), std::move(indices), std::move(source), std::move(mask), count, groups});
}

Stmt MakeMmaWait(int64_t pending) { return MakeNode(MmaWait{pending}); }

Stmt MakeCommit() { return MakeNode(Commit{}); }
Stmt MakeWait(int64_t pending) { return MakeNode(Wait{pending}); }

Stmt MakeLaneReduce(LaneReduce reduce) {
  const Load* place = reduce.place.As<Load>();
  HONE_CHECK(place != nullptr && !place->mask.defined() && reduce.place.type().width == 1);
  HONE_CHECK(reduce.reduction != Reduction::kNone && reduce.value.type() == reduce.place.type());
  HONE_CHECK(reduce.part.type() == kIndexType && (!reduce.mask.defined() || reduce.mask.type() == kBoolType));
  if (const IntImm* always = reduce.mask.As<IntImm>(); always != nullptr && always->value != 0) reduce.mask = {};
  return MakeNode(std::move(reduce));
}

Stmt MakePrefetch(Buffer buffer, Expr first, int64_t count) {
  HONE_CHECK(buffer != nullptr && first.type() == kIndexType && count > 0);
  return MakeNode(Prefetch{std::move(buffer), std::move(first), count});
}

int64_t SharedRowStride(const MatrixOperand& operand, const TensorInstructionEntry& entry) {
  const BufferNode& buffer = *operand.first.As<Load>()->buffer;
  return buffer.scope == Scope::kSwizzled ? kSwizzledRowBytes / SizeOf(buffer.dtype) : entry.chunk;
}

Buffer WrittenBuffer(const Stmt& s) {
  if (const Store* store = s.As<Store>()) return store->buffer;
  if (const Copy* copy = s.As<Copy>()) return copy->buffer;
  if (const LaneReduce* reduce = s.As<LaneReduce>()) return reduce->place.As<Load>()->buffer;
  if (const Mma* mma = s.As<Mma>()) return mma->sum.first.As<Load>()->buffer;
  return nullptr;
}

bool operator==(const Grid& a, const Grid& b) {
  const bool open = a.open_groups.defined();
  return a.groups == b.groups && a.lanes == b.lanes && open == b.open_groups.defined() &&
         (!open || Equal(a.open_groups, b.open_groups));
}

bool Equal(const Func& a, const Func& b) {
  return a.name == b.name && a.params == b.params && a.grid == b.grid && Equal(a.body, b.body);
}

}  // namespace hone::ir
