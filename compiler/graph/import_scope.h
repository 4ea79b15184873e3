// SPDX-License-Identifier: Apache-2.0
// What names and nodes mean at one point of an import (onnx_import.cc): in the model, in a function, or in a branch.
#ifndef HONE_COMPILER_GRAPH_IMPORT_SCOPE_H_
#define HONE_COMPILER_GRAPH_IMPORT_SCOPE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

// The values that names denote at one point of the model. A branch may use names of the scope outside it. An optional
// input that a function's caller leaves out is defined, as kAbsent.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, absl::StatusOr<ValueId>> values;  // an error states why this constant cannot be read

  absl::StatusOr<ValueId> Find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      auto it = scope->values.find(name);
      if (it != scope->values.end()) return it->second;
    }
    return kAbsent;
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

  bool IsInside(const RawFunction& of) const { return function == &of || (outer != nullptr && outer->IsInside(of)); }
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_SCOPE_H_
