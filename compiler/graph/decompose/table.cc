// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/table.h"

#include <array>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::graph::decompose {

std::span<const Family> AllFamilies() {
  static const std::array kFamilies = {
      Family{kMicrosoft, ActivationRows()},
      Family{kMicrosoft, AttentionRows()},
      Family{kMicrosoft, GroupQueryRows()},
      Family{kMicrosoft, NormRows()},
      Family{kMicrosoft, ProductRows()},
      Family{kMicrosoft, RotaryRows()},
      Family{kMicrosoft, MovementRows()},
      Family{kMicrosoft, OwnOperatorRows()},
      Family{kMicrosoft, SignalRows()},
      Family{"", OnnxAttentionRows()},
      Family{"", OnnxFunctionRows()},
      Family{"", SelectionRows()},
      Family{"", NgramRows()},
      Family{kMicrosoft, MicrosoftFunctionRows()},
      Family{kMicrosoft, MicrosoftSelectionRows()},
      Family{"ai.onnx.ml", MlFeatureRows()},
      Family{"ai.onnx.ml", MlLinearRows()},
      Family{"ai.onnx.ml", MlTreeRows()},
      Family{"ai.onnx.preview", PreviewRows()},
      Family{"ai.onnx.preview.training", TrainingRows()},
      Family{"com.microsoft.nchwc", BlockedChannelRows()},
      Family{kMicrosoft, ConvolutionRows()},
      Family{kMicrosoft, QuantizedProductRows()},
      Family{kMicrosoft, QuantizedRows()},
      // the domains that quantizers write, or none
      Family{"", QonnxRows()},
      Family{"finn.custom_op.general", QonnxRows()},
      Family{"onnx.brevitas", QonnxRows()},
      Family{"qonnx.custom_op.general", QonnxRows()},
      Family{"", RequantRows()},
      Family{"PACTOps", RequantRows()},
      Family{"ai.onnx.contrib", RequantRows()},
  };
  return kFamilies;
}

namespace {

// The first of `required` inputs that the node lacks, or -1.
int64_t MissingInput(const Node& node, size_t required) {
  for (size_t i = 0; i < required; ++i) {
    if (i >= node.inputs.size() || node.inputs[i] == kAbsent) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

const Row* FindRow(std::string_view domain, std::string_view name, int64_t onnx_opset) {
  for (const Family& family : AllFamilies()) {
    const bool without_domain = domain.empty() && family.domain == kMicrosoft;
    if (family.domain != domain && !without_domain) continue;
    for (const Row& row : family.rows) {
      if (row.name == name && (!without_domain || onnx_opset < row.onnx_since)) return &row;
    }
  }
  return nullptr;
}

absl::StatusOr<Values> Decompose(const Row& row, const Node& node, const GraphWriter& writer) {
  if (const int64_t missing = MissingInput(node, row.inputs_min); missing >= 0) {
    return absl::InvalidArgumentError(fmt::format("input {} is missing", missing));
  }
  Decomposition decomposition(node, writer);
  absl::StatusOr<Values> outputs = row.rule(decomposition);
  HONE_RETURN_IF_ERROR(decomposition.status());  // first, because other errors may follow from it
  HONE_RETURN_IF_ERROR(outputs.status());
  if (outputs->empty()) return outputs;
  outputs->resize(node.outputs.size(), kAbsent);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) {
      (*outputs)[i] = kAbsent;
    } else if ((*outputs)[i] == kAbsent) {
      return absl::UnimplementedError(
          fmt::format("the model reads its output {}, which is not supported; remove the nodes that read it", i));
    }
  }
  return outputs;
}

}  // namespace hone::graph::decompose
