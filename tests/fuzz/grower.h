// SPDX-License-Identifier: Apache-2.0
// A graph that grows node by node; the recipes (recipes.h) use it.
//
// The grower computes every new value on one draw of the inputs. It refuses a node if the operator refuses it or if the
// result cannot be compared between rounded computations. Such results are too large, NaN, or jump (to a neighbouring
// integer, say) although inputs are known only up to rounding.
//
// A graph may have open sizes. Recipes see the shapes of one example, in which every open size is a prime number that
// other extents are not multiples of, unless by chance. A number in a shape or a list of numbers that is a multiple of
// the prime stands for the multiple of the open size. Every value is also computed at the smallest and the largest
// sizes, and its shape there must be the one that the open shape gives. Start with Grow.
#ifndef HONE_TESTS_FUZZ_GROWER_H_
#define HONE_TESTS_FUZZ_GROWER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "compiler/graph/graph.h"

namespace hone::fuzz {

using graph::TensorType;
using graph::ValueId;
using Attributes = std::map<std::string, graph::Attribute>;
using Ints = std::vector<int64_t>;

// The effect of a node on rounding errors in its inputs.
enum class Effect : uint8_t {
  kMoves,   // copies values, or chooses continuously among them: as exact as its inputs
  kRounds,  // computes new, rounded values
  kJumps,   // a small change of a float may change the result a lot: needs exact inputs
};

class Grower {
 public:
  // open: the graph gets one to three open sizes.
  explicit Grower(uint64_t seed, bool open = false);

  bool HasOpenSizes() const { return !examples_.empty(); }

  // --- Draws.
  int64_t Below(int64_t n) { return random_.Below(n); }
  int64_t Between(int64_t low, int64_t high) { return low + random_.Below(high - low + 1); }
  bool OneIn(int64_t n) { return random_.Below(n) == 0; }
  template <typename T>
  const T& OneOf(std::span<const T> options) {
    return options[static_cast<size_t>(Below(static_cast<int64_t>(options.size())))];
  }
  template <typename T, size_t n>
  const T& OneOf(const T (&options)[n]) {
    return OneOf(std::span<const T>(options));
  }
  int64_t Extent();  // small, often 1, odd or prime
  Ints Shape(int64_t min_rank, int64_t max_rank);
  double Real(double low, double high) { return low + (high - low) * random_.Uniform(); }

  // --- Values.
  // The type in the example, whose shape is fixed.
  const TensorType& TypeOf(ValueId id) const { return computed_[0].graph.values[static_cast<size_t>(id)].type; }
  Ints ShapeOf(ValueId id) const { return ir::Values(TypeOf(id).shape); }
  // The smallest extents.
  Ints LeastShapeOf(ValueId id) const;
  int64_t RankOf(ValueId id) const { return static_cast<int64_t>(ShapeOf(id).size()); }
  // Returns a random value for which `passes` holds, later ones more often; kAbsent if there is none.
  ValueId Pick(const std::function<bool(ValueId id)>& passes);
  ValueId PickFloat(int64_t min_rank = 0, int64_t max_rank = 5);
  ValueId PickExactFloat();
  ValueId PickNumber();  // a float or an integer
  ValueId PickAny(int64_t min_rank = 0);
  // Returns a value of this type: an existing one, a new input, or a new constant.
  ValueId Operand(ir::DType dtype, const Ints& shape);
  // Like Operand, but with a shape that broadcasts with `shape`.
  ValueId Partner(ir::DType dtype, const Ints& shape);
  ValueId Input(ir::DType dtype, const Ints& shape);
  ValueId Constant(ir::DType dtype, const Ints& shape, double low, double high);
  ValueId Scalar(ir::DType dtype, double value) { return Constant(dtype, {}, value, value); }
  ValueId Numbers(const Ints& numbers);  // an i64 vector of axes, sizes or pads; Pick never returns it
  // Pick no longer returns the value.
  void Hide(ValueId id) { pickable_[static_cast<size_t>(id)] = false; }
  bool IsExact(ValueId id) const { return exact_[static_cast<size_t>(id)]; }

  // --- Nodes.
  // Adds a node and returns its outputs; returns none if the node is refused.
  std::vector<ValueId> Grow(std::string_view op, std::vector<ValueId> inputs, Effect effect, Attributes attributes = {},
                            size_t outputs = 1, std::string_view domain = "");
  // Adds a node with one output and returns that, or kAbsent.
  ValueId GrowOne(std::string_view op, std::vector<ValueId> inputs, Effect effect, Attributes attributes = {},
                  std::string_view domain = "");

  size_t nodes() const { return graph_.nodes.size(); }
  // The error of an operator that failed in any way other than refusing a node.
  const absl::Status& fault() const { return fault_; }
  // Returns the graph. Its outputs are all values without a reader and, at random, some others.
  graph::Graph Finish();

 private:
  // The graph with numbers for its open sizes, all values with data.
  struct Computed {
    std::map<std::string, ir::Size, std::less<>> sizes;
    graph::Graph graph;
  };
  void DrawSizes();
  // The size that the number stands for.
  ir::Size AsSize(int64_t number) const;
  ir::Shape AsShape(const Ints& shape) const;
  static TensorType At(const TensorType& type, const Computed& computed);
  // Adds a fixed constant, or an input.
  ValueId Add(std::string_view hint, const TensorType& type, graph::TensorData data);
  ValueId AddInput(const TensorType& type);
  // Whether the values are results of the type, at their sizes.
  bool HaveTypes(const std::vector<graph::Constant>& values, const std::vector<TensorType>& types,
                 const Computed& computed);
  bool Acceptable(const graph::Node& node, Effect effect, const std::vector<TensorType>& types) const;
  bool ExactInputs(const graph::Node& node) const;
  std::vector<ValueId> Refused(const absl::Status& why);

  Random random_;
  graph::Graph graph_;
  std::vector<int64_t> examples_;   // per open size of graph_: its number in the example
  std::vector<Computed> computed_;  // the values of graph_: in the example and, with open sizes, at both ends
  std::vector<bool> exact_;         // per value: equal to the bit however it is computed
  std::vector<bool> pickable_;      // per value: Pick may return it
  absl::Status fault_;
};

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_GROWER_H_
