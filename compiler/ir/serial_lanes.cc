// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/serial_lanes.h"

#include "base/status.h"

namespace hone::ir {

Stmt CopyAsStore(const Copy& copy) {
  const Load& load = *copy.source.As<Load>();
  HONE_CHECK(copy.indices.size() == 1 && load.indices.size() == 1);
  const int width = static_cast<int>(copy.count);
  const auto elements = [&](const Expr& first) { return width == 1 ? first : MakeRamp(first, Expr(1), width); };
  const Expr mask = copy.mask.defined() ? MakeBroadcast(copy.mask, width) : Expr();
  return MakeStore(copy.buffer, {elements(copy.indices[0])}, MakeLoad(load.buffer, {elements(load.indices[0])}, mask));
}

Stmt SerialReduceStep(const LaneReduce& reduce) {
  const Load& place = *reduce.place.As<Load>();
  const Expr value =
      MakeSelect(Equals(reduce.part, Expr(0)), reduce.value, Combine(reduce.reduction, reduce.place, reduce.value));
  const Stmt store = MakeStore(place.buffer, place.indices, value);
  return reduce.mask.defined() ? MakeIf(reduce.mask, store) : store;
}

}  // namespace hone::ir
