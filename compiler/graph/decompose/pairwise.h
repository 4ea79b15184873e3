// SPDX-License-Identifier: Apache-2.0
// Probabilities of classes from the scores of pairwise classifiers: T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability
// Estimates for Multi-class Classification by Pairwise Coupling" (2004), with the iteration of LIBSVM and ONNX Runtime.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_PAIRWISE_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_PAIRWISE_H_

#include <cstdint>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// `scores` is [rows, classes * (classes - 1) / 2], in the order (0, 1), (0, 2), ...; attributes prob_a and prob_b turn
// each into a probability. The result is [rows, classes]. The iteration ends for each row where ONNX Runtime ends it,
// which random scores reach within 4 rounds; it makes at most 8. Unimplemented for more than 16 classes.
ValueId ClassProbabilities(Decomposition& b, ValueId scores, int64_t classes);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_PAIRWISE_H_
