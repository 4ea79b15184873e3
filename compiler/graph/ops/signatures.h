// SPDX-License-Identifier: Apache-2.0
// The signatures of ONNX's operators: how many inputs and outputs a node may have, and which attributes, per opset.
//
// The table has operators that Hone does not support, too, and two that old files have in ONNX's domain although only
// other runtimes define them. It says nothing of element types and of meaning, which is in the other files of this
// folder. To add a version, add a row. Start with FindSignature.
#ifndef HONE_COMPILER_GRAPH_OPS_SIGNATURES_H_
#define HONE_COMPILER_GRAPH_OPS_SIGNATURES_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace hone::graph {

inline constexpr int kAnyNumber = -1;  // of inputs or outputs

struct OpSignature {
  std::string_view name;
  int since = 1;  // the first opset version with this signature; it holds until the next row of the same name
  int inputs_max = 0, outputs_max = 0;  // or kAnyNumber
  // The attributes as text: name, colon and kind, separated by blanks, as in "axis:i mode:s". Kinds are i (integer),
  // f (float), s (string), I, F, S (lists of these), t (tensor), g (graph) and p (type). Empty: no attributes.
  std::string_view attributes = "";
  bool deprecated = false;  // ONNX replaced the operator; nodes of these opsets must use the successor
};

// All rows: operators by name, versions ascending.
std::span<const OpSignature> AllSignatures();
// All versions of an operator of the domain ai.onnx, ascending. Empty if the table does not have it.
std::span<const OpSignature> SignaturesOf(std::string_view name);

// The signature of the operator at this opset version. nullptr if the table does not have the operator, or if the
// operator is newer than the opset.
const OpSignature* FindSignature(std::string_view name, int64_t opset);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_SIGNATURES_H_
