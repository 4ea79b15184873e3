// SPDX-License-Identifier: Apache-2.0
// A Workload: a fused sub-graph as tensor expressions. It is the unit of tuning, digests and records, and becomes one
// kernel.
//
// A stage computes one buffer element by element: out[axes] = reduce over reduce_axes of value. Stages are in
// topological order and load only from params and earlier stages. How to compute them is up to the schedule
// (compiler/schedule). The canonical text (Print) parses back and is the input of the digest. Canonicalize renames
// everything, so that equal sub-graphs of different models share a digest on every platform.
#ifndef HONE_COMPILER_IR_WORKLOAD_H_
#define HONE_COMPILER_IR_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"

namespace hone::ir {

struct Axis {
  std::string name;  // the index variable in the stage's value; unique in the workload
  Size extent;
};

// kNone is no reduction. kSum to kMin fold: they combine values two at a time, in any order.
//
// kOrder sorts. Its values are pairs in an i64: a key, which is the signed high half, and anything in the low half. The
// element at place p of the last axis is the p-th pair of the only reduce axis, in ascending order of the keys; pairs
// of equal keys stay in the order of the reduce axis. The value does not depend on the last axis.
enum class Reduction : uint8_t { kNone, kSum, kProd, kMax, kMin, kOrder };
constexpr bool Folds(Reduction reduction) { return reduction != Reduction::kNone && reduction != Reduction::kOrder; }
// For reductions that fold.
Expr Identity(Reduction reduction, Type type);  // 0, 1, lowest, highest (-inf, inf for floats)
Expr Combine(Reduction reduction, Expr a, Expr b);
// OK if the reduction folds and is defined for the type.
absl::Status CheckReduction(Reduction reduction, Type type);

struct Stage {
  Buffer buffer;  // shape == extents of axes
  std::vector<Axis> axes;
  std::vector<Axis> reduce_axes;  // empty iff reduction == kNone
  Reduction reduction = Reduction::kNone;
  Expr value;  // of the buffer's type, in terms of the axes' Vars
};

enum class ParamKind : uint8_t { kInput, kConstant };  // constants are known when the model is compiled
struct Param {
  Buffer buffer;
  ParamKind kind = ParamKind::kInput;
  // The range of plausible values. Candidates are measured on inputs drawn uniformly from [low, high], for example the
  // valid indices of a gather or positive arguments of a logarithm.
  double low = -1.0, high = 1.0;
};

struct Workload {
  // The operator of the anchor: "conv2d", "matmul", ... A label for people; it decides nothing, but is a part of Print
  // and so of the digest.
  std::string op;
  // The open sizes that shapes and extents use. Their Vars may be used in values of stages.
  std::vector<OpenSize> sizes;
  std::vector<Param> params;
  std::vector<Stage> stages;
  std::vector<Buffer> outputs;  // stage buffers, in the order of the kernel's output arguments

  const Stage* FindStage(const BufferNode* buffer) const;  // nullptr for a param
};

// Renames buffers to p0.., t0.., axes to i0.. and open sizes to n0.. in order of appearance, and orders the params by
// first use.
Workload Canonicalize(const Workload& workload);
// The order of params in Canonicalize: canonical param k is workload.params[result[k]].
std::vector<size_t> CanonicalParamOrder(const Workload& workload);
// The order of sizes in Canonicalize: canonical size k is workload.sizes[result[k]].
std::vector<size_t> CanonicalSizeOrder(const Workload& workload);
// The workload with numbers for all its open sizes. Aborts if one has no number, or one outside its range.
Workload WithSizes(const Workload& workload, const std::map<std::string, int64_t, std::less<>>& values);
// The workload with size_fn of each extent, and value_fn of each stage's value. value_fn sees the old buffers. `sizes`
// stays.
Workload MapSizes(Workload workload, const std::function<Size(const Size&)>& size_fn,
                  const std::function<Expr(const Expr&)>& value_fn);
// One line per open size, param, stage and output; see docs/IR.md for the grammar.
std::string Print(const Workload& workload);
// numbers: immediates that names in values and, for i64, in extents stand for.
absl::StatusOr<Workload> ParseWorkload(std::string_view text, const std::map<std::string, Expr>& numbers = {});
// Lower-case hex SHA-256 of Print(Canonicalize(workload)).
std::string WorkloadDigest(const Workload& workload);
// Checks types, unique names, loads (known buffers, one index per dimension) and topological order. Errors:
// InvalidArgument.
absl::Status Verify(const Workload& workload);
// The arithmetic operations of all stages, on integers too, counting a multiply-add as two. Inside indices, masks and
// conditions only those on floats count. Both arms of a Select count.
double CountFlops(const Workload& workload);
// A short title for display: the extents of the largest stage, reduction extents in brackets, without those that are 1:
// "conv2d 111x111x64 (3x3x3)".
std::string Title(const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_WORKLOAD_H_
