// SPDX-License-Identifier: Apache-2.0
// What passes may know of an operator without knowing its name: stated in its row of the operator tables (op.h).
//
// Only what its expressions do not show: that a node reduces, works element by element on the shapes it has, or leaves
// its input as it is, is found by looking at what it emits (traits.h). tests/unit/ops/facts_test.cc holds axes and
// movement against the expressions of every operator. An operator without facts is right everywhere, but may be slower.
// Start with OpFacts; FactsOf asks for those of a node.
#ifndef HONE_COMPILER_GRAPH_OP_FACTS_H_
#define HONE_COMPILER_GRAPH_OP_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/graph/graph.h"

namespace hone::graph {

// How a node speaks of the dimensions of its data (input 0, and every other value of its rank), and so what has to
// change in it when they are put in another order.
enum class AxisForm : uint8_t {
  kOwn,           // in a way of its own: no other order is possible
  kBroadcast,     // not at all: an element depends on the operands' elements at its place, broadcast as numpy does it
  kLayout,        // as batch, channels and space; attribute layout is "NCHW" or, with the channels last, "NHWC"
  kAxis,          // attribute axis
  kAxes,          // attribute axes, or constant input 1; all if there are none. Not where keepdims is 0
  kSlice,         // constant inputs 1 to 4: starts, ends, axes, steps
  kPads,          // a begin and an end per dimension, in attribute pads or in constant input 1; not with axes (input 3)
  kPerDimension,  // constant inputs from 1 on have one number per dimension, or two; not with attribute axes
};

struct Axes {
  AxisForm form = AxisForm::kOwn;
  int64_t axis = 0;  // attribute axis where a node has none
  int since = 1;     // the first opset of which this is true; before it the form is kOwn
};

// Where the elements of the outputs come from.
enum class Movement : uint8_t {
  kNone,  // they are computed, or read several times
  kOnce,  // each is an element of an input or a fill; none is read twice, but for a border that is mirrored (Pad)
  kView,  // output 0 has the elements of input 0 in their order: only its shape may differ
};

// What people call the operator, in records and tables.
struct Label {
  std::string_view text = "";                                         // empty: the operator's name in snake case
  std::string (*of)(const Graph& graph, const Node& node) = nullptr;  // instead, where it depends on the node
};

struct OpFacts {
  Axes axes = {};
  Movement movement = Movement::kNone;
  Label label = {};
  // A float among its inputs, a scale or a slope, is another one in each layer: it stays a param of the kernel, so that
  // layers of one shape are one workload.
  bool floats_differ = false;
};

// Those of most operators: element by element, with numpy's broadcasting.
inline constexpr OpFacts kElementwise = {.axes = {AxisForm::kBroadcast}};

// The facts of the node's operator; none if there is no such operator.
const OpFacts& FactsOf(const Node& node);

AxisForm AxisFormOf(const Node& node);
// The node only renames bytes: its one output that is there is a view of input 0.
bool IsView(const Node& node);
std::string LabelOf(const Graph& graph, const Node& node);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OP_FACTS_H_
