// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "compiler/ir/expr_parser.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/text.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

// Above the limits of every device. They bound the verifier's work, which looks at each lane.
constexpr int64_t kGridLanesMax = int64_t{1} << 16, kGridGroupsMax = int64_t{1} << 31;

class FuncParser {
 public:
  explicit FuncParser(TokenStream tokens) : exprs_(std::move(tokens)), tokens_(exprs_.tokens()) {}

  absl::StatusOr<Func> Run() {
    Func func;
    HONE_RETURN_IF_ERROR(tokens_.Expect("func"));
    HONE_ASSIGN_OR_RETURN(func.name, tokens_.ExpectName("the name of the func"));
    HONE_RETURN_IF_ERROR(tokens_.Expect("("));
    while (!tokens_.Accept(")")) {
      if (!func.params.empty()) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
      HONE_ASSIGN_OR_RETURN(Buffer param, exprs_.ParseDeclaration(Scope::kParam));
      if (exprs_.BindBuffer(param->name, param) != nullptr) {
        return tokens_.Error(fmt::format("there are two parameters '{}'", param->name));
      }
      func.params.push_back(std::move(param));
    }
    if (tokens_.Accept("grid")) HONE_RETURN_IF_ERROR(ParseGrid(&func.grid));
    HONE_ASSIGN_OR_RETURN(func.body, ParseBody());
    if (!tokens_.AtEnd()) return tokens_.Error("expected the end of the text after the func");
    return func;
  }

 private:
  absl::Status ParseGrid(Grid* grid) {
    HONE_ASSIGN_OR_RETURN(grid->groups, tokens_.ExpectInteger("the number of groups"));
    HONE_RETURN_IF_ERROR(tokens_.Expect("lanes"));
    HONE_ASSIGN_OR_RETURN(grid->lanes, tokens_.ExpectInteger("the lanes of a group"));
    if (grid->groups < 1 || grid->lanes < 1) return tokens_.Error("a grid must have at least one group and one lane");
    if (grid->lanes > kGridLanesMax || grid->groups > kGridGroupsMax) {
      return tokens_.Error(fmt::format("a grid has at most {} groups of {} lanes", kGridGroupsMax, kGridLanesMax));
    }
    if (tokens_.Accept("sizes")) HONE_RETURN_IF_ERROR(ParseOpenGroups(grid));
    exprs_.BindVar(kGroupVar, kIndexType);
    exprs_.BindVar(kLaneVar, kIndexType);
    return absl::OkStatus();
  }

  // Parses "n, m groups (n + 63) // 64 * m". The sizes are bound for this expression only.
  absl::Status ParseOpenGroups(Grid* grid) {
    std::map<std::string, std::optional<Type>> before;
    do {
      HONE_ASSIGN_OR_RETURN(const std::string size, tokens_.ExpectName("a size"));
      before.try_emplace(size, exprs_.BindVar(size, kIndexType));
    } while (tokens_.Accept(","));
    HONE_RETURN_IF_ERROR(tokens_.Expect("groups"));
    const Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(grid->open_groups, exprs_.ParseExpr());
    if (grid->open_groups.type() != kIndexType) return TokenStream::ErrorAt(at, "a number of groups must be an i64");
    for (const auto& [size, type] : before) exprs_.RestoreVar(size, type);
    return absl::OkStatus();
  }

  // Parses "{ statements }". A single statement is returned without a block around it.
  absl::StatusOr<Stmt> ParseBody(std::string name = {}) {
    HONE_RETURN_IF_ERROR(exprs_.Enter());
    HONE_RETURN_IF_ERROR(tokens_.Expect("{"));
    std::vector<Stmt> stmts;
    while (!tokens_.Accept("}")) {
      HONE_ASSIGN_OR_RETURN(Stmt stmt, ParseStmt());
      stmts.push_back(std::move(stmt));
    }
    exprs_.Leave();
    return MakeBlock(std::move(stmts), std::move(name));
  }

  absl::StatusOr<Stmt> ParseStmt() {
    if (tokens_.PeekIs("{")) return ParseBody();
    if (tokens_.Peek().kind == Token::Kind::kWord) {
      if (const auto kind = ParseLoopKind(tokens_.Peek().text)) return ParseFor(*kind);
      if (tokens_.Accept("if")) return ParseIf();
      if (tokens_.Accept("alloc")) return ParseAlloc();
      if (tokens_.Accept("let")) return ParseLet();
      if (tokens_.Accept("barrier")) return MakeBarrier();
      if (tokens_.Accept("contract")) return ParseMma();
      if (tokens_.Accept("settle")) return ParseMmaWait();
      if (tokens_.Accept("copy")) return ParseCopy();
      if (tokens_.Accept("commit")) return MakeCommit();
      if (tokens_.Accept("wait")) return ParseWait();
      if (tokens_.Accept("merge")) return ParseLaneReduce();
      if (tokens_.Accept("prefetch")) return ParsePrefetch();
      if (tokens_.Accept("block")) {
        HONE_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("the name of the block"));
        return ParseBody(std::move(name));
      }
    }
    return ParseStore();
  }

  absl::StatusOr<Stmt> ParseFor(LoopKind kind) {
    tokens_.Next();
    HONE_ASSIGN_OR_RETURN(std::string var, tokens_.ExpectName("a loop variable"));
    HONE_RETURN_IF_ERROR(tokens_.Expect("in"));
    const Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(Expr extent, exprs_.ParseExpr());
    if (extent.type() != kIndexType) return TokenStream::ErrorAt(at, "the extent of a loop must be an i64");
    const auto before = exprs_.BindVar(var, kIndexType);
    HONE_ASSIGN_OR_RETURN(Stmt body, ParseBody());
    exprs_.RestoreVar(var, before);
    return MakeFor(std::move(var), std::move(extent), kind, std::move(body));
  }

  absl::StatusOr<Stmt> ParseIf() {
    const Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(Expr condition, exprs_.ParseExpr());
    if (condition.type() != kBoolType) return TokenStream::ErrorAt(at, "the condition of an 'if' must be a bool");
    HONE_ASSIGN_OR_RETURN(Stmt then_case, ParseBody());
    Stmt else_case;
    if (tokens_.Accept("else")) {
      HONE_ASSIGN_OR_RETURN(else_case, ParseBody());
    }
    return MakeIf(std::move(condition), std::move(then_case), std::move(else_case));
  }

  absl::StatusOr<Stmt> ParseAlloc() {
    // The scope follows the declaration in the text, so the buffer is made a second time with its scope.
    HONE_ASSIGN_OR_RETURN(const Buffer declared, exprs_.ParseDeclaration(Scope::kLocal));
    const auto scope = ParseScope(tokens_.Peek().text);
    if (!scope.has_value() || *scope == Scope::kParam) {
      return tokens_.Error("expected the scope of the buffer: workspace, local, shared or swizzled");
    }
    tokens_.Next();
    Buffer buffer = MakeBuffer(declared->name, declared->dtype, declared->shape, *scope);
    Buffer before = exprs_.BindBuffer(buffer->name, buffer);
    HONE_ASSIGN_OR_RETURN(Stmt body, ParseBody());
    exprs_.RestoreBuffer(buffer->name, std::move(before));
    return MakeAlloc(std::move(buffer), std::move(body));
  }

  absl::StatusOr<Stmt> ParseLet() {
    HONE_ASSIGN_OR_RETURN(std::string var, tokens_.ExpectName("a variable"));
    HONE_RETURN_IF_ERROR(tokens_.Expect("="));
    HONE_ASSIGN_OR_RETURN(Expr value, exprs_.ParseExpr());
    const auto before = exprs_.BindVar(var, value.type());
    HONE_ASSIGN_OR_RETURN(Stmt body, ParseBody());
    exprs_.RestoreVar(var, before);
    return MakeLet(std::move(var), std::move(value), std::move(body));
  }

  absl::StatusOr<Stmt> ParseMma() {
    const Token name = tokens_.Next();
    const auto instruction = ParseTensorInstruction(name.text);
    if (!instruction.has_value()) {
      return TokenStream::ErrorAt(name, fmt::format("there is no tensor instruction '{}'", name.text));
    }
    HONE_ASSIGN_OR_RETURN(MatrixOperand sum, exprs_.ParseMatrix());
    HONE_RETURN_IF_ERROR(tokens_.Expect("+="));
    HONE_ASSIGN_OR_RETURN(MatrixOperand a, exprs_.ParseMatrix());
    HONE_RETURN_IF_ERROR(tokens_.Expect("*"));
    HONE_ASSIGN_OR_RETURN(MatrixOperand b, exprs_.ParseMatrix());
    return MakeMma(*instruction, std::move(sum), std::move(a), std::move(b));
  }

  absl::StatusOr<Stmt> ParseMmaWait() {
    HONE_ASSIGN_OR_RETURN(const int64_t pending, tokens_.ExpectInteger("the number of commit groups left in flight"));
    return MakeMmaWait(pending);
  }

  absl::StatusOr<Stmt> ParseCopy() {
    HONE_ASSIGN_OR_RETURN(const int64_t count, tokens_.ExpectInteger("the number of elements of the copy"));
    int64_t groups = 1;
    if (tokens_.Accept("group")) {
      HONE_ASSIGN_OR_RETURN(groups, tokens_.ExpectInteger("the number of groups that share the copy"));
    }
    HONE_ASSIGN_OR_RETURN(ExprParser::Access place, exprs_.ParseAccess());
    HONE_RETURN_IF_ERROR(tokens_.Expect("="));
    HONE_ASSIGN_OR_RETURN(ExprParser::Access source, exprs_.ParseAccess());
    if (place.mask.defined())
      return TokenStream::ErrorAt(place.at, "the destination of a copy must not have a condition");
    if (place.type.width != 1 || source.type.width != 1) {
      return TokenStream::ErrorAt(place.at, "source and destination of a copy must be its first elements, not vectors");
    }
    if (place.type != source.type) {
      return TokenStream::ErrorAt(place.at, fmt::format("the destination is {} but the source is {}",
                                                        ToString(place.type), ToString(source.type)));
    }
    return MakeCopy(std::move(place.buffer), std::move(place.indices),
                    MakeLoad(std::move(source.buffer), std::move(source.indices)), std::move(source.mask), count,
                    groups);
  }

  absl::StatusOr<Stmt> ParseWait() {
    HONE_ASSIGN_OR_RETURN(const int64_t pending, tokens_.ExpectInteger("the number of commit groups left in flight"));
    return MakeWait(pending);
  }

  absl::StatusOr<Stmt> ParseLaneReduce() {
    HONE_ASSIGN_OR_RETURN(ExprParser::Access place, exprs_.ParseAccess());
    if (place.type.width != 1)
      return TokenStream::ErrorAt(place.at, "the destination of 'merge' must be one element, not a vector");
    HONE_RETURN_IF_ERROR(tokens_.Expect("="));
    const auto reduction = ParseReduction(tokens_.Peek().text);
    if (!reduction.has_value() || !Folds(*reduction))
      return tokens_.Error("expected the reduction: sum, prod, max or min");
    tokens_.Next();
    const Token part_at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(Expr part, exprs_.ParseExpr());
    if (part.type() != kIndexType) return TokenStream::ErrorAt(part_at, "the index of the part must be an i64");
    HONE_RETURN_IF_ERROR(tokens_.Expect(":"));
    HONE_ASSIGN_OR_RETURN(const int64_t parts, tokens_.ExpectInteger("the number of parts"));
    HONE_RETURN_IF_ERROR(tokens_.Expect("of"));
    const Token value_at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(Expr value, exprs_.ParseExpr());
    if (value.type() != place.type) {
      return TokenStream::ErrorAt(value_at, fmt::format("the destination is {} but the value is {}",
                                                        ToString(place.type), ToString(value.type())));
    }
    return MakeLaneReduce({*reduction, MakeLoad(std::move(place.buffer), std::move(place.indices)),
                           std::move(place.mask), std::move(part), parts, std::move(value)});
  }

  absl::StatusOr<Stmt> ParsePrefetch() {
    const Token at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(const int64_t count, tokens_.ExpectInteger("the number of elements to prefetch"));
    if (count < 1) return TokenStream::ErrorAt(at, "a prefetch must have at least one element");
    HONE_ASSIGN_OR_RETURN(Buffer buffer, exprs_.ParseBufferName());
    HONE_RETURN_IF_ERROR(tokens_.Expect("from"));
    const Token first_at = tokens_.Peek();
    HONE_ASSIGN_OR_RETURN(Expr first, exprs_.ParseExpr());
    if (first.type() != kIndexType)
      return TokenStream::ErrorAt(first_at, "the index of the first element must be an i64");
    return MakePrefetch(std::move(buffer), std::move(first), count);
  }

  absl::StatusOr<Stmt> ParseStore() {
    HONE_ASSIGN_OR_RETURN(ExprParser::Access access, exprs_.ParseAccess());
    HONE_RETURN_IF_ERROR(tokens_.Expect("="));
    HONE_ASSIGN_OR_RETURN(Expr value, exprs_.ParseExpr());
    if (value.type() != access.type) {
      return TokenStream::ErrorAt(access.at, fmt::format("the destination is {} but the value is {}",
                                                         ToString(access.type), ToString(value.type())));
    }
    return MakeStore(std::move(access.buffer), std::move(access.indices), std::move(value), std::move(access.mask));
  }

  ExprParser exprs_;
  TokenStream& tokens_;
};

}  // namespace

absl::StatusOr<Func> ParseFunc(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(TokenStream tokens, TokenStream::Make(text));
  return FuncParser(std::move(tokens)).Run();
}

}  // namespace hone::ir
