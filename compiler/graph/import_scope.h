// SPDX-License-Identifier: Apache-2.0
// What names and nodes mean at one point of an import (importer.h): in the model, in a function, or in a branch.
#ifndef HONE_COMPILER_GRAPH_IMPORT_SCOPE_H_
#define HONE_COMPILER_GRAPH_IMPORT_SCOPE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

// The values that names denote at one point of the model. A branch may use names of the scope outside it. An optional
// input that a function's caller leaves out is defined, as kAbsent.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, absl::StatusOr<ValueId>> values;  // an error states why this constant cannot be read
  // Set if the values are of a graph inside a node: returns the value there that stands for one outside.
  std::function<ValueId(ValueId outside)> capture = {};

  absl::StatusOr<ValueId> Find(const std::string& name) const {
    const auto it = values.find(name);
    if (it != values.end()) return it->second;
    if (outer == nullptr) return kAbsent;
    absl::StatusOr<ValueId> id = outer->Find(name);
    return capture && id.ok() && *id != kAbsent ? capture(*id) : id;
  }
  bool Has(const std::string& name) const { return values.contains(name) || (outer != nullptr && outer->Has(name)); }
};

// How to interpret the nodes being imported: the opsets of the model or function, and the attributes of the call.
struct Context {
  const std::map<std::string, int64_t>& opsets;
  const std::map<std::string, RawAttribute>* call_attributes = nullptr;  // set inside a function's body
  int depth = 0;
  const RawFunction* function = nullptr;  // set inside a function's body
  const Context* outer = nullptr;         // the context of the call or branch that is replaced by these nodes
  std::string where = {};                 // prefix of error texts: the calls and branches around the nodes
  // True inside a node whose values may stay unread: problems are no problems of the model then, but become the status
  // of the node's values.
  bool tentative = false;
  std::string path = {};  // prefix of the names of origins: "loop/" in the body of node 'loop'
  // True inside of nodes that import writes in place of one of the file: these nodes are no origins themselves.
  bool is_written = false;
  // True where all of these nodes are import's own: they are of opset kOwnOpset, and may use operators of domain
  // "hone".
  bool is_own = false;

  bool IsInside(const RawFunction& of) const { return function == &of || (outer != nullptr && outer->IsInside(of)); }
};

// Gives the name a value in the scope. InvalidArgument if it has one already, or if it is empty.
absl::Status Define(const std::string& name, absl::StatusOr<ValueId> id, Scope& scope);
// Returns per output of the node its name in the node's body; "" for an output that nothing reads.
absl::StatusOr<std::vector<std::string>> OutputsRead(const RawNode& node, const std::vector<std::string>& of_body);
// Returns the values of these names; kAbsent for "".
absl::StatusOr<std::vector<ValueId>> FindAll(const std::vector<std::string>& names, const Scope& scope);
// The same for the outputs of a body, all of which it must define.
absl::StatusOr<std::vector<ValueId>> FindOutputs(const std::vector<std::string>& names, const Scope& scope);

// Returns the node with references to the calling node's attributes replaced by their values. Only the taken branch of
// an If has to be readable.
absl::StatusOr<RawNode> BindAttributes(RawNode node, const Context& context);
// The attributes that a Node can have: all but graphs.
std::map<std::string, Attribute> AttributesOf(const RawNode& node);
// The graph in an attribute of the node.
absl::StatusOr<const RawGraph*> BodyOf(const RawNode& node, const std::string& name);
// The same for an If, whose graphs should have no inputs.
absl::StatusOr<const RawGraph*> BranchOf(const RawNode& node, const std::string& name);

// The opset version of a domain. One that the file does not import has version 1, and ONNX's own the newest, as in ONNX
// Runtime.
int64_t OpsetOf(const std::string& domain, const std::map<std::string, int64_t>& opsets);
// InvalidArgument if Hone does not read the opset of ONNX's own domain.
absl::Status CheckOpset(const std::map<std::string, int64_t>& opsets);
// The row of the table of decompositions that replaces the node; nullptr if there is none.
const decompose::Row* FindDecomposition(const RawNode& node, const std::map<std::string, int64_t>& opsets);
// Whether operator functions, a decomposition or the form of another opset define the node's operator.
bool HasMeaning(const RawNode& node, const std::map<std::string, int64_t>& opsets);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_SCOPE_H_
