// SPDX-License-Identifier: Apache-2.0
// Resolves a model's inputs before import: their shapes without symbolic dimensions, and the values of inputs that the
// caller fixes at compile time ("bound" inputs).
//
// Not here: reading the model file (onnx_reader.h), making the graph (onnx_import.h).
#ifndef HONE_COMPILER_GRAPH_BIND_INPUTS_H_
#define HONE_COMPILER_GRAPH_BIND_INPUTS_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// The ranges of open dimensions that the options decide: those in the given shapes, and options.ranges.
// InvalidArgument if the options contradict the model or each other, or name an input that the model does not have.
absl::StatusOr<DimRanges> BindSymbols(const std::vector<RawInput>& inputs, const ImportOptions& options);

// The name of the size of an input's dimension: the file's, or INPUT.INDEX, which no other dimension has.
std::string SizeName(const RawInput& input, size_t dimension);

// The size that a dimension's name states as arithmetic on others, "past_sequence + sequence"; nullopt if it is a plain
// name, or if a term is neither a number nor a key of `symbols`.
std::optional<ir::Size> SumOf(const std::string& name, const DimRanges& symbols);

// Whether the options have a shape or a value for the input.
bool IsGiven(const RawInput& input, const ImportOptions& options);

// Returns the input's type with every dimension known. InvalidArgument if a dimension stays unknown. Unimplemented if
// the input is not a tensor of a supported type.
absl::StatusOr<TensorType> BindInputType(const RawInput& input, const DimRanges& symbols, const ImportOptions& options);

// The tensors of a sequence or optional value among the inputs. The given shapes tell how many there are: those named
// NAME.0, NAME.1 and so on for a sequence. Unimplemented if the options do not give them.
absl::StatusOr<std::vector<RawInput>> ContentOf(const RawInput& input, const ImportOptions& options);

// The names of the model's inputs that need not be set at run time: those with an initializer of their name, which is
// their default, and without a bound value.
std::set<std::string> DefaultedInputs(const RawModel& model, const ImportOptions& options,
                                      const std::set<std::string>& bound);

// Returns the input's bound value in row-major order, or nullptr for an input that stays a run-time input. `type` is
// the result of BindInputType. InvalidArgument, stating the expected type and shape, if the value does not fit.
absl::StatusOr<TensorData> BindInputValue(const RawInput& input, const TensorType& type, const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_BIND_INPUTS_H_
