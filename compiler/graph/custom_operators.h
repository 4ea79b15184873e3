// SPDX-License-Identifier: Apache-2.0
// Operators that files beside the model define (--operators): as functions of ONNX operators, or as tensor expressions.
//
// A file is one of two kinds. An ONNX model defines its local functions; its graph is not read. A text begins with the
// word `operator` and gives each operator as a workload (docs/howto/define-an-operator.md). Not here: how a node gets
// the meaning of its definition (import_node.cc, ops/expression.cc). Start with ReadOperators.
#ifndef HONE_COMPILER_GRAPH_CUSTOM_OPERATORS_H_
#define HONE_COMPILER_GRAPH_CUSTOM_OPERATORS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/ir/workload.h"

namespace hone::graph {

// An operator as a workload whose text may use numbers that a node gives by attributes.
struct OperatorExpression {
  struct Number {
    std::string name;  // of the attribute, and in the text
    ir::DType dtype = ir::DType::kFloat32;
    std::optional<Attribute> fallback;  // of the type; nullopt: a node must have the attribute
  };

  std::string place;  // "FILE: line 3", where the operator is defined
  std::vector<Number> numbers;
  std::string workload_text;  // begins with as many line breaks as stand before it in the file
};

struct CustomOperators {
  using Key = std::pair<std::string, std::string>;  // domain ("" means ai.onnx), name
  std::map<FunctionKey, RawFunction> functions;
  std::map<Key, std::vector<OperatorExpression>> expressions;  // in the order of the file; the first that fits is taken
};

// Reads the files. Errors name file and line: NotFound, or InvalidArgument, also if two files define one operator.
absl::StatusOr<CustomOperators> ReadOperators(std::span<const std::string> paths);
// The operators of one text. `path` is for errors.
absl::StatusOr<CustomOperators> ParseOperators(std::string_view text, const std::string& path);

// The workload with the numbers that the attributes give. InvalidArgument if an attribute is missing, unknown or of a
// wrong type, or if the workload may read outside its inputs.
absl::StatusOr<ir::Workload> Instantiate(const OperatorExpression& expression,
                                         const std::map<std::string, Attribute>& attributes);

// Whether inputs of these types fit the workload, with the value of each of its sizes; nullopt if they do not.
using MatchedSizes = std::map<std::string, ir::Size, std::less<>>;
std::optional<MatchedSizes> MatchInputs(const ir::Workload& workload, std::span<const TensorType> inputs);

// The node of the operator hone.Expression with the first definition that fits the inputs, without name and outputs.
// InvalidArgument, which names the definitions, if none fits or it has fewer outputs.
absl::StatusOr<Node> ExpressionNode(const Graph& graph, const std::vector<ValueId>& inputs,
                                    const std::map<std::string, Attribute>& attributes, size_t outputs,
                                    const std::vector<OperatorExpression>& expressions);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_CUSTOM_OPERATORS_H_
