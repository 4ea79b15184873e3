#include "compiler/passes/flatten.h"

#include "compiler/ir/match.h"

namespace hone::passes {
namespace {

std::vector<ir::Expr> FlatIndex(const ir::BufferNode& buffer, const std::vector<ir::Expr>& indices) {
  ir::Expr flat = ir::Expr(0);
  int64_t stride = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    flat = flat + indices[d] * ir::Expr(stride);
    stride *= buffer.shape[d];
  }
  return {flat};
}

ir::Expr FlattenExpr(const ir::Expr& e) {
  const ir::Expr mapped = ir::MapChildren(e, FlattenExpr);
  const ir::Load* load = mapped.As<ir::Load>();
  return load != nullptr ? ir::MakeLoad(load->buffer, FlatIndex(*load->buffer, load->indices), load->mask) : mapped;
}

}  // namespace

ir::Stmt Flatten(const ir::Stmt& s) {
  const ir::Stmt mapped = ir::MapChildren(s, Flatten, FlattenExpr);
  const ir::Store* store = mapped.As<ir::Store>();
  return store != nullptr
             ? ir::MakeStore(store->buffer, FlatIndex(*store->buffer, store->indices), store->value, store->mask)
             : mapped;
}

}  // namespace hone::passes
