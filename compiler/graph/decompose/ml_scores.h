// SPDX-License-Identifier: Apache-2.0
// The rows, scores and labels of all models of ai.onnx.ml. Where the specification leaves them open, they are those of
// ONNX Runtime.
//
// Scores are [rows, classes or targets]. Not here: the models (ml_linear.cc, ml_trees.cc).
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_ML_SCORES_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_ML_SCORES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// Returns input 0 as rows [n, features] of f32; of f64 if it has that type and `keep_f64`. A vector of features is one
// row.
ValueId RowsOf(Decomposition& b, bool keep_f64 = false);

// Attribute post_transform.
enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
PostTransform ReadPostTransform(Decomposition& b);

// Applies the transform to rows of at least two scores. To one score per row, only kProbit is applied.
ValueId Transformed(Decomposition& b, ValueId scores, PostTransform transform);

// How a binary classifier with one score s makes two, unless the transform is kLogistic: then the scores are the
// logistic functions of -s and s.
enum class SecondScore : uint8_t {
  kComplement,  // 1 - s, s
  kNegation,    // -s, s
};
// `score` is [rows, 1]. The result is [rows, 2]; with kProbit it is [rows, 1], as in ONNX Runtime.
ValueId TwoScores(Decomposition& b, ValueId score, SecondScore second, PostTransform transform);

// The labels of the classes: attribute `ints`, or the attribute `strings`, of which only the number is known here.
struct ClassLabels {
  std::vector<int64_t> ints;  // empty if the labels are strings
  size_t count = 0;
};
ClassLabels ReadClassLabels(Decomposition& b, std::string_view ints, std::string_view strings);
// Returns the labels at these indices (i64 of any shape), or kAbsent if output 0 is not used. Strings are an error.
ValueId LabelsAt(Decomposition& b, const ClassLabels& labels, ValueId indices);
// The labels of the first largest score of each row.
ValueId LabelsOfLargest(Decomposition& b, const ClassLabels& labels, ValueId scores);
// Label 1 where `condition` (bool [rows, 1]) holds, else label 0.
ValueId LabelsWhere(Decomposition& b, const ClassLabels& labels, ValueId condition);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_ML_SCORES_H_
