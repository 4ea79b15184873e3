// SPDX-License-Identifier: Apache-2.0
// Operator facts: properties of an operator that passes may rely on without knowing its name. They are stated in its
// row of the operator tables (op.h).
//
// Facts state only what the operator's expressions do not show. That a node reduces, is element-wise on its shapes, or
// returns its input unchanged is found by analysing its stages (traits.h). tests/unit/ops/facts_test.cc checks axes and
// movement against the expressions of every operator. An operator without facts is compiled correctly but may be
// slower. Start with OpFacts; FactsOf returns the facts of a node.
#ifndef HONE_COMPILER_GRAPH_OP_FACTS_H_
#define HONE_COMPILER_GRAPH_OP_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/graph/graph.h"

namespace hone::graph {

// How a node's attributes and inputs refer to the dimensions of its data (input 0, and every other value of the same
// rank). It decides what must change in the node when the dimensions of the data are permuted.
enum class AxisForm : uint8_t {
  kOwn,        // in an operator-specific way: the dimensions cannot be permuted
  kBroadcast,  // not at all: each output element depends on the operands' elements at its index, with numpy
               // broadcasting
  kLayout,     // as batch, channels and space; attribute layout is "NCHW" or, with channels last, "NHWC"
  kAxis,       // by the attribute axis
  kAxes,       // by attribute axes or constant input 1; all axes if both are absent. Not permutable if keepdims is 0
  kSlice,      // by constant inputs 1 to 4: starts, ends, axes, steps
  kPads,       // by a begin and an end per dimension, in attribute pads or constant input 1; not permutable if input 3
               // (axes) is present
  kPerDimension,  // constant inputs from 1 on have one or two numbers per dimension; not permutable if attribute axes
                  // is present
};

struct Axes {
  AxisForm form = AxisForm::kOwn;
  int64_t axis = 0;  // default of the attribute axis
  int since = 1;     // first opset version with this form; in older ones the form is kOwn
};

// Where the elements of the outputs come from.
enum class Movement : uint8_t {
  kNone,  // elements are computed, or an input element is used several times
  kOnce,  // each is an input element or a fill value; no input element is used twice, except at a mirrored border (Pad)
  kView,  // output 0 has the elements of input 0 in their order: only its shape may differ
};

// The operator's name in records and tables.
struct Label {
  std::string_view text = "";  // empty: the ONNX name in snake case
  std::string (*of)(const Graph& graph,
                    const Node& node) = nullptr;  // if set, used instead of text: the name depends on the node
};

// Rows of input 0 that a node replaces: output 0 equals input 0 everywhere else.
struct WrittenRows {
  ValueId rows;    // of the output's shape, but for the axis
  ValueId starts;  // integers, one per entry of dimension 0: where the rows begin; rows beyond an end are left out.
                   // kAbsent: at 0
  int64_t axis;    // at least 1
};

struct OpFacts {
  Axes axes = {};
  Movement movement = Movement::kNone;
  Label label = {};
  // True if a float input of one element (a scale, a slope) typically differs from layer to layer. It then stays a
  // param of the kernel, so that layers of equal shapes share one workload.
  bool floats_differ = false;
  // True if a pass may need the node although its inputs are constant: the import leaves it to FoldConstants.
  bool fold_late = false;
  // If set: the rows that the node writes, or nullopt if it does more than that.
  std::optional<WrittenRows> (*writes_rows)(const Graph& graph, const Node& node) = nullptr;
};

// The facts of most operators: element-wise with numpy broadcasting.
inline constexpr OpFacts kElementwise = {.axes = {AxisForm::kBroadcast}};

// Returns the facts of the node's operator; default facts if the operator is unknown.
const OpFacts& FactsOf(const Node& node);

AxisForm AxisFormOf(const Node& node);
// Returns true if the node only reinterprets bytes: it has one present output, which is a view of input 0.
bool IsView(const Node& node);
std::string LabelOf(const Graph& graph, const Node& node);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OP_FACTS_H_
