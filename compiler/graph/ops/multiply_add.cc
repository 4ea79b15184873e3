// SPDX-License-Identifier: Apache-2.0
// MultiplyAdd, the internal operator a * b + c with one rounding, for rules that reproduce a kernel that uses it.
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {
namespace {

OpResult MultiplyAdd(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  const ir::Buffer& a = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(auto shape, BroadcastShapes(a->shape, args.inputs[1]->shape));
  HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, args.inputs[2]->shape));
  return Buffers{Map(builder, "multiply_add", a->dtype, std::move(shape), [&](Indices i) {
    const ir::Expr x = ReadBroadcast(a, i);
    return ir::MakeCall(x.type(), ir::Intrinsic::kFma,
                        {x, ReadBroadcast(args.inputs[1], i), ReadBroadcast(args.inputs[2], i)});
  })};
}

constexpr OpDef kMultiplyAddOps[] = {{"MultiplyAdd",
                                      Checked<MultiplyAdd, 3, Elements::kFloat>,
                                      {.axes = {AxisForm::kBroadcast}, .floats_differ = true}}};

}  // namespace

std::span<const OpDef> MultiplyAddOps() { return kMultiplyAddOps; }

}  // namespace hone::graph
