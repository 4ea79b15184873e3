// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "compiler/ir/expr_parser.h"
#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/workload.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

// Far above the largest workloads. It bounds memory: a token takes about 80 bytes and may be a single character.
constexpr size_t kWorkloadTokensMax = size_t{1} << 18;

class WorkloadParser {
 public:
  WorkloadParser(TokenStream tokens, const std::map<std::string, Expr>& numbers)
      : exprs_(std::move(tokens)), tokens_(exprs_.tokens()) {
    for (const auto& [name, number] : numbers) {
      exprs_.BindNumber(name, number);
      numbers_[name] = number;
    }
  }

  absl::StatusOr<Workload> Run() {
    HONE_RETURN_IF_ERROR(tokens_.Expect("workload"));
    HONE_ASSIGN_OR_RETURN(workload_.op, tokens_.ExpectString("the operator"));
    while (!tokens_.AtEnd()) {
      if (tokens_.Accept("size")) {
        HONE_ASSIGN_OR_RETURN(OpenSize size, exprs_.ParseOpenSize());
        workload_.sizes.push_back(std::move(size));
      } else if (tokens_.Accept("input")) {
        HONE_RETURN_IF_ERROR(ParseParam(ParamKind::kInput));
      } else if (tokens_.Accept("const")) {
        HONE_RETURN_IF_ERROR(ParseParam(ParamKind::kConstant));
      } else if (tokens_.Accept("output")) {
        HONE_ASSIGN_OR_RETURN(Buffer buffer, exprs_.ParseBufferName());
        workload_.outputs.push_back(std::move(buffer));
      } else {
        HONE_RETURN_IF_ERROR(ParseStage());
      }
    }
    return std::move(workload_);
  }

 private:
  absl::Status ParseParam(ParamKind kind) {
    Param param;
    param.kind = kind;
    HONE_ASSIGN_OR_RETURN(param.buffer, exprs_.ParseDeclaration(Scope::kParam));
    if (tokens_.Accept("in")) {
      HONE_RETURN_IF_ERROR(tokens_.Expect("["));
      HONE_ASSIGN_OR_RETURN(param.low, tokens_.ExpectDouble("the low end of the range"));
      HONE_RETURN_IF_ERROR(tokens_.Expect(","));
      HONE_ASSIGN_OR_RETURN(param.high, tokens_.ExpectDouble("the high end of the range"));
      HONE_RETURN_IF_ERROR(tokens_.Expect("]"));
    }
    exprs_.BindBuffer(param.buffer->name, param.buffer);
    workload_.params.push_back(std::move(param));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Axis>> ParseAxes() {
    std::vector<Axis> axes;
    do {
      const Token at = tokens_.Peek();
      HONE_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("an axis"));
      if (numbers_.contains(name)) {
        return TokenStream::ErrorAt(at, fmt::format("axis '{}' has the name of a number; give it another name", name));
      }
      HONE_RETURN_IF_ERROR(tokens_.Expect(":"));
      HONE_ASSIGN_OR_RETURN(Size extent, exprs_.ParseSize("the extent of the axis"));
      exprs_.BindVar(name, kIndexType);
      axes.push_back({std::move(name), std::move(extent)});
    } while (tokens_.Accept(","));
    return axes;
  }

  absl::Status ParseStage() {
    const Token at = tokens_.Peek();
    Stage stage;
    HONE_ASSIGN_OR_RETURN(stage.buffer, exprs_.ParseDeclaration(Scope::kParam));
    if (tokens_.Accept("over")) {
      HONE_ASSIGN_OR_RETURN(stage.axes, ParseAxes());
    }
    HONE_RETURN_IF_ERROR(tokens_.Expect("="));
    const auto reduction = ParseReduction(tokens_.Peek().text);
    // "max(a, b)" is a function call, "max k:3 of" a reduction.
    if (reduction && tokens_.Peek().kind == Token::Kind::kWord && !tokens_.PeekIs("(", 1)) {
      tokens_.Next();
      stage.reduction = *reduction;
      HONE_ASSIGN_OR_RETURN(stage.reduce_axes, ParseAxes());
      HONE_RETURN_IF_ERROR(tokens_.Expect("of"));
    }
    HONE_ASSIGN_OR_RETURN(stage.value, exprs_.ParseExpr());
    if (!numbers_.empty()) stage.value = Substitute(stage.value, numbers_);
    for (const Axis& axis : stage.axes) exprs_.RestoreVar(axis.name, std::nullopt);
    for (const Axis& axis : stage.reduce_axes) exprs_.RestoreVar(axis.name, std::nullopt);
    exprs_.BindBuffer(stage.buffer->name, stage.buffer);
    workload_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  ExprParser exprs_;
  TokenStream& tokens_;
  VarMap numbers_;
  Workload workload_;
};

}  // namespace

absl::StatusOr<Workload> ParseWorkload(std::string_view text, const std::map<std::string, Expr>& numbers) {
  HONE_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Make(text, kWorkloadTokensMax));
  HONE_ASSIGN_OR_RETURN(Workload workload, WorkloadParser(std::move(tokens), numbers).Run());
  HONE_RETURN_IF_ERROR(Verify(workload));
  return workload;
}

}  // namespace hone::ir
