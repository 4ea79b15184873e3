// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/match.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

std::vector<ir::Expr> FlatIndex(const ir::BufferNode& buffer, const std::vector<ir::Expr>& indices) {
  const int width = indices.empty() ? 1 : indices.back().type().width;  // only the last index may be a vector
  const auto wide = [&](const ir::Expr& e) { return e.type().width == 1 ? ir::MakeBroadcast(e, width) : e; };
  ir::Expr flat = wide(ir::Expr(0));
  ir::Size stride = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    flat = flat + wide(indices[d]) * wide(ir::Expr(stride));
    if (d > 0) stride *= buffer.shape[d];  // a scalar buffer has no shape[0], but may be accessed by a flat index
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
  if (const ir::Copy* copy = mapped.As<ir::Copy>()) {
    return ir::MakeCopy(copy->buffer, FlatIndex(*copy->buffer, copy->indices), copy->source, copy->mask, copy->count,
                        copy->groups);
  }
  const ir::Store* store = mapped.As<ir::Store>();
  return store != nullptr
             ? ir::MakeStore(store->buffer, FlatIndex(*store->buffer, store->indices), store->value, store->mask)
             : mapped;
}

}  // namespace hone::passes
