// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/plain.h"

#include "base/status.h"

namespace hone::ir {

Stmt AsStore(const Copy& copy) {
  const Load& load = *copy.source.As<Load>();
  HONE_CHECK(copy.indices.size() == 1 && load.indices.size() == 1);
  const int width = static_cast<int>(copy.count);
  const auto elements = [&](const Expr& first) { return width == 1 ? first : MakeRamp(first, Expr(1), width); };
  const Expr mask = copy.mask.defined() ? MakeBroadcast(copy.mask, width) : Expr();
  return MakeStore(copy.buffer, {elements(copy.indices[0])}, MakeLoad(load.buffer, {elements(load.indices[0])}, mask));
}

Stmt OneByOne(const Merge& merge) {
  const Load& place = *merge.place.As<Load>();
  const Expr value =
      MakeSelect(Equals(merge.part, Expr(0)), merge.value, Combine(merge.reduction, merge.place, merge.value));
  const Stmt store = MakeStore(place.buffer, place.indices, value);
  return merge.mask.defined() ? MakeIf(merge.mask, store) : store;
}

}  // namespace hone::ir
