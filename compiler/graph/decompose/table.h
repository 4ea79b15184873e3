// SPDX-License-Identifier: Apache-2.0
// The table of decompositions: operators outside ONNX's own set that the importer replaces by ONNX's operators, so that
// passes and fusion treat them like any other part of a model.
//
// Not here: the rules, which are in the file of the family, in the function named by its row. To add an operator, write
// its rule beside similar ones and add a row to the table at the end of that file. Start with Decompose.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_TABLE_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// The onnx_since of rows whose operator ONNX does not define.
inline constexpr int kNeverInOnnx = INT32_MAX;

struct Row {
  std::string_view name;
  Rule rule;
  size_t inputs_min = 1;  // the number of first inputs that a node must have
  // The version of ai.onnx that defines an operator of this name itself. Before it, a node of ai.onnx with this name
  // can only mean the row: exporters used to write operators of com.microsoft without a domain. Only the domain
  // com.microsoft asks for it.
  int onnx_since = kNeverInOnnx;
};

// The rows of one family in one domain. Names are unique within a domain over all families.
struct Family {
  std::string_view domain;
  std::span<const Row> rows;
};

// All families; the spans point to static tables.
std::span<const Family> AllFamilies();

inline constexpr std::string_view kMicrosoft = "com.microsoft";

// Returns the row that replaces an operator, or nullptr if there is none. `onnx_opset` is the version of ai.onnx that
// the model uses; 0 means that it names none.
const Row* FindRow(std::string_view domain, std::string_view name, int64_t onnx_opset);

// Writes the operators that replace the node, whose output ids are ignored except kAbsent. Returns one value per output
// of the node, kAbsent exactly where the output is kAbsent; an empty list if the rule keeps the node. Errors do not
// name the node.
absl::StatusOr<Values> Decompose(const Row& row, const Node& node, const GraphWriter& writer);

// One function per family, defined in the file that the comment names. The spans point to static tables.
std::span<const Row> ActivationRows();          // activation.cc: Gelu and its relatives
std::span<const Row> AttentionRows();           // attention.cc: Attention, MultiHeadAttention, packed forms
std::span<const Row> BlockedChannelRows();      // convolution.cc: domain com.microsoft.nchwc, refused
std::span<const Row> ConvolutionRows();         // convolution.cc: FusedConv, channels last
std::span<const Row> GroupQueryRows();          // group_query_attention.cc: GroupQueryAttention
std::span<const Row> MicrosoftFunctionRows();   // onnx_functions.cc: operators that ONNX has taken over
std::span<const Row> MicrosoftSelectionRows();  // selection.cc: Unique
std::span<const Row> MlFeatureRows();           // ml_features.cc: domain ai.onnx.ml, Scaler, LabelEncoder, ...
std::span<const Row> MlLinearRows();            // ml_linear.cc: domain ai.onnx.ml, linear models and SVMs
std::span<const Row> MlTreeRows();              // ml_trees.cc: domain ai.onnx.ml, TreeEnsemble*
std::span<const Row> MovementRows();            // movement.cc: elements moved, selected or added; dropout
std::span<const Row> NormRows();                // norm.cc: layer, group and root-mean-square normalization
std::span<const Row> OwnOperatorRows();         // own_operators.cc: those with tensor expressions of their own (ops/)
std::span<const Row> PreviewRows();             // flex_attention.cc: domain ai.onnx.preview, FlexAttention
std::span<const Row> ProductRows();             // product.cc: FusedMatMul, FusedGemm and their relatives
std::span<const Row> QonnxRows();               // quantizers.cc: domains of qonnx, finn and brevitas
std::span<const Row> QuantizedProductRows();    // quantized_product.cc: QGemm, DynamicQuantizeMatMul, ...
std::span<const Row> QuantizedRows();           // quantized.cc: QLinearAdd, QLinearConcat, QLinearAveragePool, ...
std::span<const Row> RequantRows();             // quantizers.cc: RequantShift
std::span<const Row> RotaryRows();              // rotary.cc: rotary embeddings
std::span<const Row> SignalRows();              // signal.cc: Fourier transforms, complex products
std::span<const Row> TrainingRows();            // training.cc: domain ai.onnx.preview.training, steps of optimizers

// Operators of ONNX's own set:
std::span<const Row> NgramRows();          // ngrams.cc: TfIdfVectorizer
std::span<const Row> OnnxAttentionRows();  // onnx_attention.cc: Attention
std::span<const Row> OnnxFunctionRows();   // onnx_functions.cc: CausalConvWithState, SwiGLU
std::span<const Row> SelectionRows();      // selection.cc: NonZero, Compress, Unique

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_TABLE_H_
