// SPDX-License-Identifier: Apache-2.0
// TreeWalk, the internal operator that finds the leaf of each row in each tree of a forest.
//
// Every stage takes one step down in all trees at once: it loads the split of the node and the row's feature, compares,
// and loads the child. The code therefore grows with the depth of the trees, not with the number of their nodes. The
// trees are made by decompose/ml_trees.cc.
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

constexpr int64_t kTreeDepthMax = 1024;  // one stage per step

// Inputs of TreeWalk.
constexpr size_t kFeatures = 1, kThresholds = 2, kChildren = 3, kRoots = 4, kEqual = 5, kMissing = 6;

// The index, or the nearest one of a dimension of this extent.
Expr Clamped(const Expr& index, const Expr& extent) { return Max(Min(index, extent - Expr(1)), Expr(0)); }

absl::Status CheckTreeInputs(const OpArgs& args) {
  const Buffer& x = args.inputs[0];
  const Buffer& thresholds = args.inputs[kThresholds];
  if (Rank(x) != 2 || Rank(thresholds) != 1 || Rank(args.inputs[kRoots]) != 1) {
    return Malformed("input 0 must be a matrix, and inputs 2 and 4 lists");
  }
  const auto& splits = thresholds->shape;
  if (Product(splits) == 0 || x->shape[1] == 0) return Malformed("there must be at least one split and one feature");
  if (thresholds->dtype != x->dtype) return Malformed("inputs 0 and 2 must be of one type");
  for (size_t i : {kFeatures, kEqual, kMissing}) {
    if (args.Has(i) && args.inputs[i]->shape != splits)
      return Malformed(fmt::format("input {} must have one element per split", i));
  }
  const Buffer& children = args.inputs[kChildren];
  if (Rank(children) != 1 || children->shape[0] != splits[0] * 2) {
    return Malformed("input 3 must have two elements per split");
  }
  for (size_t i : {kFeatures, kChildren, kRoots}) {
    if (!ir::IsInt(args.inputs[i]->dtype)) return Malformed(fmt::format("input {} must be integers", i));
  }
  for (size_t i : {kEqual, kMissing}) {
    if (args.Has(i) && args.inputs[i]->dtype != DType::kBool) return Malformed(fmt::format("input {} must be bool", i));
  }
  return absl::OkStatus();
}

// Inputs: x [rows, features]; per split its feature, its threshold and its two children (first that of "no"); the root
// of each tree; and optionally bools per split: whether it asks for equality instead of <=, and whether NaN is "yes". A
// child below the number of splits is a split; others are leaves: the number of splits plus the number of the leaf.
// Attribute depth is the number of splits on the longest path. Output: the leaf's number, i32 [rows, trees].
OpResult TreeWalk(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckTreeInputs(args));
  const Buffer& x = args.inputs[0];
  const int64_t depth = args.Int("depth", 1);
  const Expr splits(args.inputs[kThresholds]->shape[0]), features(x->shape[1]);
  if (depth < 0 || depth > kTreeDepthMax) {
    return Unsupported(fmt::format("the trees are {} deep; at most {} is supported", depth, kTreeDepthMax));
  }
  const decltype(x->shape) shape = {x->shape[0], args.inputs[kRoots]->shape[0]};
  Buffer node = builder.Compute("root", DType::kInt32, shape, [&](Indices i) {
    return To(DType::kInt32, Max(ReadAs(DType::kInt64, args.inputs[kRoots], {i[1]}), Expr(0)));
  });
  for (int64_t step = 0; step < depth; ++step) {
    node = builder.Compute("step", DType::kInt32, shape, [&](Indices i) {
      const Expr here = ReadAs(DType::kInt64, node, {i[0], i[1]});
      const Expr split = Clamped(here, splits);
      const Expr feature = Clamped(ReadAs(DType::kInt64, args.inputs[kFeatures], {split}), features);
      const Expr value = Read(x, {i[0], feature}), threshold = Read(args.inputs[kThresholds], {split});
      Expr yes = value <= threshold;
      if (args.Has(kEqual)) yes = MakeSelect(Read(args.inputs[kEqual], {split}), Equals(value, threshold), yes);
      if (args.Has(kMissing)) {
        const Expr missing = MakeSelect(Apply(ir::Intrinsic::kIsNan, value), Read(args.inputs[kMissing], {split}), yes);
        yes = missing;
      }
      const Expr side = MakeSelect(yes, Expr(1), Expr(0));
      const Expr child = Max(ReadAs(DType::kInt64, args.inputs[kChildren], {split * Expr(2) + side}), Expr(0));
      return To(DType::kInt32, MakeSelect(here < splits, child, here));
    });
  }
  return Buffers{builder.Compute("leaf", DType::kInt32, shape, [&](Indices i) {
    return To(DType::kInt32, Max(ReadAs(DType::kInt64, node, {i[0], i[1]}) - splits, Expr(0)));
  })};
}

// Random trees for timing: any node may follow any other.
void TreeRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input < kFeatures || input == kThresholds || input > kRoots) return;
  const int64_t splits = args.inputs[kThresholds]->shape.empty() ? 1 : args.inputs[kThresholds]->shape[0].max();
  const int64_t features = Rank(args.inputs[0]) < 2 ? 1 : args.inputs[0]->shape[1].max();
  *low = 0;
  *high = static_cast<double>((input == kFeatures ? features : splits) - 1);
}

constexpr OpDef kTreeOps[] = {{"TreeWalk", Checked<TreeWalk, 5, Elements::kFloat>, {}, TreeRange}};

}  // namespace

std::span<const OpDef> TreeOps() { return kTreeOps; }

}  // namespace hone::graph
