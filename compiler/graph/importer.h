// SPDX-License-Identifier: Apache-2.0
// One import of a model (onnx_import.h): it reads the nodes in order and adds what they mean to a graph.
//
// Names are looked up in scopes (import_scope.h). Its functions are in three files: importer.cc has the model and lists
// of nodes, import_node.cc has one node, and import_bodies.cc has nodes with graphs inside. Start with Run.
#ifndef HONE_COMPILER_GRAPH_IMPORTER_H_
#define HONE_COMPILER_GRAPH_IMPORTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/custom_operators.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/import_as_loop.h"
#include "compiler/graph/import_control.h"
#include "compiler/graph/import_graph.h"
#include "compiler/graph/import_log.h"
#include "compiler/graph/import_scope.h"
#include "compiler/graph/import_sequence.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/small_types.h"

namespace hone::graph {

class Importer {
 public:
  explicit Importer(const RawModel& model) : model_(model) {}
  // Returns the graph, or RefusalOf all problems. report() is set in both cases.
  absl::StatusOr<Graph> Run(const ImportOptions& options);
  const ImportReport& report() const { return report_; }

 private:
  // Interpreter steps for all large constants together whose values an operator needs at import.
  static constexpr int64_t kNeededFoldStepsTotalMax = int64_t{1} << 27;
  static constexpr int kNestingDepthMax = 64;  // of functions within functions and branches within branches
  // Nodes of a function count once per call, so nested calls multiply them.
  static constexpr size_t kImportedNodesMax = 1'000'000;

  // --- The model and lists of nodes (importer.cc).

  absl::Status ImportModel(const ImportOptions& options);
  static void MarkReported(Scope& scope);
  // Returns a name that is unique in the graph. Values in inlined bodies may have the names of others.
  std::string UniqueName(const std::string& name);
  NameSource NewNames() { return std::bind_front(&Importer::UniqueName, this); }
  // Counts imported nodes against the limit, including those that leave nothing in the graph (constants, calls, folded
  // nodes), because they take time as well.
  absl::Status Count(size_t nodes);
  ValueId AddNamed(const std::string& name, TensorType type, TensorData data);
  // Returns true if the scope already has this tensor, under its name and with the same bytes.
  bool Repeats(const RawInitializer& tensor, const Scope& scope) const;
  absl::Status AddInitializers(const RawGraph& graph, Scope& scope, const std::set<std::string>& replaced = {});
  // Imports those nodes on which `outputs` depend. Unused nodes may be invalid. A value that only branches read is an
  // error only if a branch that is taken reads it.
  absl::Status ImportNodes(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs,
                           const Context& context, Scope& scope);
  // ImportNodes, for nodes that define each value once.
  absl::Status ImportUnique(const std::vector<RawNode>& nodes, const std::vector<std::string>& outputs,
                            const Context& context, Scope& scope);

  // --- One node (import_node.cc).

  absl::StatusOr<std::vector<ValueId>> ImportNode(const RawNode& raw, size_t index, const Context& context,
                                                  Scope& scope);
  // The same without origins.
  absl::StatusOr<std::vector<ValueId>> ImportUnnamed(const RawNode& raw, size_t index, const Context& context,
                                                     Scope& scope);
  // Makes the node an origin, by this name, of those nodes that were added for it: their outputs are numbered from
  // `values` on.
  void SetOrigins(const RawNode& raw, const std::string& name, size_t values);
  // A part that ONNX Runtime computes.
  absl::StatusOr<std::vector<ValueId>> ImportPart(const RawNode& raw, const Scope& scope);
  // The definition of the node's operator by a function: by a file of operators, or else by the model. Null: none.
  const RawFunction* FindFunction(const RawNode& node) const;
  // The definitions of the node's operator by tensor expressions; null if there are none.
  const std::vector<OperatorExpression>* FindExpressions(const RawNode& node) const;
  static absl::StatusOr<std::vector<ValueId>> Named(absl::StatusOr<std::vector<ValueId>> result, const RawNode& node,
                                                    size_t index);
  static bool IsRawControlFlow(const RawNode& node);
  // Returns the status for the values of a node that failed.
  absl::Status AddNodeProblem(const absl::Status& status, const RawNode& node, size_t index, const Context& context);
  // Checks what needs no types: that Hone has the operator, and the node's form. Converts attributes.
  absl::Status CheckOperator(RawNode& node, size_t index, const Context& context);
  // Reports what can be said of the bodies of a node that is not imported itself.
  void CheckBodies(const RawNode& node, size_t index, const Context& context);
  void CheckInBody(RawNode node, size_t index, const Context& context);
  absl::StatusOr<std::vector<ValueId>> Inline(const RawNode& call, size_t index, const RawFunction& function,
                                              const Context& context, Scope& outer);
  absl::StatusOr<std::vector<ValueId>> ImportConstant(const RawNode& node);
  absl::StatusOr<std::vector<ValueId>> ImportOperator(RawNode& raw, size_t index, const Context& context,
                                                      const Scope& scope);
  // The small type that the node's results have, or nullptr. Unimplemented if the operator computes with elements of a
  // small type.
  absl::StatusOr<const SmallType*> SmallTypeOfResults(const Node& node) const;
  // Adds the node with the meaning of the first expression that fits its inputs.
  absl::StatusOr<std::vector<ValueId>> ImportExpression(const RawNode& raw,
                                                        const std::vector<OperatorExpression>& expressions,
                                                        size_t index, const Scope& scope);
  // Writes the operators that the row replaces the node by. A value that they make gets the name of the output.
  absl::StatusOr<std::vector<ValueId>> Decompose(const decompose::Row& row, const Node& node,
                                                 const std::vector<std::string>& names,
                                                 const decompose::NodeGraphs& graphs);

  // --- Control flow (import_bodies.cc). These set saw_body_ once they import a body, which reports the problems inside
  // it.

  Context InsideOf(const RawNode& node, size_t index, const Context& context) const;
  // A branch whose condition is known takes the place of the node.
  absl::StatusOr<std::vector<ValueId>> ImportIf(const RawNode& node, size_t index, const Context& context,
                                                const Scope& outer);
  // An If whose condition a run decides.
  absl::StatusOr<std::vector<ValueId>> ImportBranches(const RawNode& node, size_t index, const Context& inner,
                                                      const Scope& outer, ValueId condition);
  using DefineInputs = std::function<absl::Status(Scope& scope)>;  // adds a body's own inputs, and defines their names
  // Imports a graph inside a node as a graph of its own. Values from outside that it reads become captures.
  absl::StatusOr<ImportedBody> ImportBody(const RawGraph& body, const std::vector<std::string>& outputs,
                                          const Context& inner, const Scope& outer, const DefineInputs& define_inputs);
  absl::Status ImportInto(const RawGraph& body, const std::vector<std::string>& outputs, const Context& inner,
                          Scope& scope, const DefineInputs& define_inputs);
  // What passes between the graphs of a node must not be of a small type, because only its bytes would pass.
  absl::Status CheckNotSmall(const std::vector<ValueId>& values, std::string_view what) const;
  // An optional scalar input; kAbsent if the node leaves it out.
  absl::StatusOr<ValueId> ScalarInput(const RawNode& node, size_t input, ir::DType dtype, const Scope& outer);
  // A value of the graph inside that is the number of the step.
  ValueId StepNumber(const std::string& name, const ir::OpenSize& counter);
  absl::StatusOr<std::vector<ValueId>> ImportLoop(const RawNode& node, size_t index, const Context& context,
                                                  const Scope& outer);
  static std::vector<ValueId> PresentOutputs(const RawNode& node, std::vector<ValueId> outputs);
  // Adds one input of the graph inside per state, from the body's input number `first` on.
  absl::Status DefineStates(const RawGraph& body, size_t first, const std::vector<TensorType>& types, Scope& scope);
  SpellAsLoop SpelledAsLoop(const RawNode& node, const Scope& scope) const;
  // Whether the node is about sequences. Unimplemented if it reads one and is not: only a Loop carries them.
  absl::StatusOr<bool> IsOnSequences(const RawNode& node, const Scope& scope) const;
  // Imports bodies of the node in its place, with values for their inputs.
  InlineBody InlineBodies(const RawNode& node, size_t index, const Context& context, const Scope& outer);
  // The graphs in the node's attributes, for a rule that writes them in its place.
  decompose::NodeGraphs GraphsOf(const RawNode& node, size_t index, const Context& context, const Scope& outer);
  absl::StatusOr<std::vector<ValueId>> ImportOnSequences(const RawNode& node, size_t index, const Context& context,
                                                         const Scope& scope);
  // A Loop with sequences among its states.
  absl::StatusOr<std::vector<ValueId>> ImportLoopOnSequences(const RawNode& node, size_t index, const Context& context,
                                                             const Scope& outer, const RawGraph& body);
  // An operator that is imported as nodes with a Loop.
  absl::StatusOr<std::vector<ValueId>> ImportAsLoop(const RawNode& node, size_t /*index*/, const Context& context,
                                                    const Scope& outer);

  const RawModel& model_;
  const ImportOptions* options_ = nullptr;
  DimRanges symbols_;                                 // of the inputs' open dimensions
  std::shared_ptr<const CustomOperators> operators_;  // null: none
  ImportGraph model_graph_;
  ImportGraph* at_ = &model_graph_;  // the graph to which nodes are added: the model's, or one inside a node
  std::map<std::string, int64_t> last_numbers_;  // per used name: the last number that UniqueName appended to it
  size_t imported_ = 0;
  bool saw_body_ = false;   // whether the last node of control flow imported a body
  int64_t loop_steps_ = 0;  // ImportOptions::loop_steps
  Sequences sequences_;
  ImportLog log_;
  ImportReport report_;                                   // set when Run ends
  int64_t needed_steps_left_ = kNeededFoldStepsTotalMax;  // budget of ImportGraph::FoldValue
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORTER_H_
