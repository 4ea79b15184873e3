// SPDX-License-Identifier: Apache-2.0
// The table of old forms: operators of ai.onnx that earlier opsets wrote in another way. The importer rewrites them, so
// that the functions of operators (ops/) and the passes know one form only.
//
// A rewrite is here if an opset gave other meaning to the same attributes and inputs, or other attributes and inputs to
// the same meaning, and the operator's function does not read both. Most files have the changes that one opset made:
// to_7.cc has operators as opsets before 7 wrote them. Start with FindRewrite.
#ifndef HONE_COMPILER_GRAPH_OPSETS_TABLE_H_
#define HONE_COMPILER_GRAPH_OPSETS_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::opsets {

using decompose::Attributes;
using decompose::Decomposition;
using decompose::Values;

// For rewrites of nodes of every opset.
inline constexpr int kAnyOpset = INT32_MAX;

struct Rewrite {
  std::string_view name;  // the operator
  int before;             // the rewrite is for nodes of older opsets than this
  // Returns the values that take the place of the node's outputs, as a rule of decompositions does, or an empty list to
  // keep the node as it is.
  decompose::Rule rule;
  size_t inputs_min = 1;  // the number of first inputs that a node must have
};

// Returns the rewrite for a node of ai.onnx, or nullptr if its form needs none. If several steps changed the operator,
// it is that of the first step after the node's opset; it writes the newest form at once.
const Rewrite* FindRewrite(std::string_view name, int opset);

// One function per file, which the comment names. The spans point to static tables.
std::span<const Rewrite> RewritesTo2();            // to_2.cc: Pad
std::span<const Rewrite> RewritesTo6();            // to_6.cc: Cast, Selu, Tile
std::span<const Rewrite> RewritesTo7();            // to_7.cc: broadcasting, Gemm, PRelu, Upsample
std::span<const Rewrite> NormalizationRewrites();  // normalization.cc: BatchNormalization, MeanVarianceNormalization
std::span<const Rewrite> RemovedOperators();       // removed.cc: experiments that ONNX ended before opset 10
std::span<const Rewrite> DropoutRewrites();        // dropout.cc: Dropout in training, of every opset
std::span<const Rewrite> ResizeRewrites();         // resize.cc: Resize to sizes that a run computes, of every opset

}  // namespace hone::graph::opsets

#endif  // HONE_COMPILER_GRAPH_OPSETS_TABLE_H_
