// SPDX-License-Identifier: Apache-2.0
// Sequences and optional values of an import (importer.h). A graph has only tensors: a sequence is a list of its
// values that the import keeps, and the operators on sequences leave few nodes or none.
//
// In place of a ValueId, a sequence has a number below kAbsent. A present optional value is its content. The number of
// elements must be known when the model is compiled, or the sequence is stacked: the rows that a loop makes, with equal
// shapes. Start with Sequences::Import.
#ifndef HONE_COMPILER_GRAPH_IMPORT_SEQUENCE_H_
#define HONE_COMPILER_GRAPH_IMPORT_SEQUENCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/import_graph.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

struct Sequence {
  std::vector<ValueId> elements;  // tensors
  ValueId stacked = kAbsent;      // if set, the elements are its rows along axis 0, and `elements` is empty
  bool is_none = false;           // no sequence: an optional value without content
};

// Imports the nodes of a body in place, as often as it is called, and returns its outputs. Values of the scope around
// the node are visible.
using InlineBody =
    std::function<absl::StatusOr<std::vector<ValueId>>(const RawGraph& body, const std::vector<ValueId>& inputs)>;

class Sequences {
 public:
  static bool Is(ValueId id) { return id <= kFirst; }
  ValueId Add(Sequence sequence);
  const Sequence& At(ValueId id) const { return sequences_[static_cast<size_t>(kFirst - id)]; }
  // The sequence with `map` of all its values.
  ValueId Map(ValueId id, const std::function<ValueId(ValueId)>& map);

  // Whether the node is about sequences or optional values, by its operator or, for Identity, by its inputs.
  static bool Handles(const RawNode& node, const std::vector<ValueId>& inputs);
  // Returns the outputs of such a node. Unimplemented if a position or number of elements is not known. `steps_left` is
  // the interpreter's budget (ImportGraph::FoldValue).
  absl::StatusOr<std::vector<ValueId>> Import(const RawNode& node, const std::vector<ValueId>& inputs, ImportGraph& at,
                                              int64_t& steps_left, const InlineBody& inline_body);

  // A Loop with sequences among its states whose number of steps is known: all steps, one after the other. nullopt if
  // the number is not known, or large.
  absl::StatusOr<std::optional<std::vector<ValueId>>> Unroll(const RawNode& loop, const RawGraph& body,
                                                             const std::vector<ValueId>& inputs, ImportGraph& at,
                                                             int64_t& steps_left, const InlineBody& inline_body);

 private:
  static constexpr ValueId kFirst = -1000;
  std::vector<Sequence> sequences_;
};

// A Loop whose states of type sequence are replaced by rows that it stacks.
struct StackedLoop {
  RawNode loop;
  // Per output of the original node: the output of the new one, and whether it is a stacked sequence.
  struct Output {
    size_t index;
    bool is_stacked;
  };
  std::vector<Output> outputs;
};
// Replaces the states for which `is_sequence` holds. Unimplemented unless each begins empty and is appended to once in
// each step, and the body reads it for nothing else.
absl::StatusOr<StackedLoop> StackStates(const RawNode& loop, const RawGraph& body, const std::vector<ValueId>& inputs,
                                        const Sequences& sequences);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_SEQUENCE_H_
