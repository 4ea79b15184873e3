// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/program.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "tests/ptx/cluster.h"
#include "tests/ptx/decoder.h"
#include "tests/ptx/names.h"
#include "tests/ptx/statement.h"

namespace hone::ptx {
namespace {

constexpr std::string_view kSpaces[] = {".global", ".const", ".shared", ".local"};

Space SpaceOf(std::string_view name) {
  return name == ".shared" ? Space::kShared : name == ".local" ? Space::kLocal : Space::kGlobal;
}

// The bytes of a type as "f32"; 0 if it is not a type.
uint64_t BytesOfType(std::string_view type) {
  for (const auto& [bits, bytes] : {std::pair<const char*, uint64_t>{"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}}) {
    if (type.ends_with(bits)) return bytes;
  }
  return 0;
}

// The bytes of one number, or of numbers in braces.
absl::Status TakeInitial(Tokens* tokens, uint64_t element_bytes, std::vector<std::byte>* bytes) {
  const bool is_list = tokens->TakeIf("{");
  size_t at = 0;
  do {
    HONE_ASSIGN_OR_RETURN(const int64_t value, tokens->TakeInteger());
    if (at + element_bytes > bytes->size()) return tokens->Error("there are more values than the variable has");
    for (uint64_t b = 0; b < element_bytes; ++b) (*bytes)[at++] = static_cast<std::byte>(value >> (8 * b));
  } while (is_list && tokens->TakeIf(","));
  return is_list ? tokens->Expect("}") : absl::OkStatus();
}

class Parser {
 public:
  Parser(std::string_view text, const std::function<bool(std::string_view)>& wanted) : tokens_(text), wanted_(wanted) {}
  absl::StatusOr<Program> Parse();

 private:
  absl::StatusOr<Variable> TakeVariable(bool is_extern);
  absl::Status TakeEntry();
  absl::Status TakeHead(Kernel* kernel, Decoder* decoder);
  absl::Status TakeBody(Decoder* decoder);
  absl::Status TakeRegisters(Decoder* decoder);
  void SkipBody();

  Tokens tokens_;
  const std::function<bool(std::string_view)>& wanted_;
  std::vector<Variable> variables_;  // of the module
  Program program_;
};

// Parses ".align 4 .b8 name[16] = {1, 2}", which follows the space.
absl::StatusOr<Variable> Parser::TakeVariable(bool is_extern) {
  Variable variable;
  variable.space = SpaceOf(tokens_.Take());
  variable.asked = is_extern;
  uint64_t element_bytes = 0;
  while (tokens_.Peek().starts_with('.')) {
    const std::string_view word = tokens_.Take();
    if (word == ".align") {
      HONE_ASSIGN_OR_RETURN(variable.align, tokens_.TakeInteger());
    } else if (element_bytes = BytesOfType(word); element_bytes == 0) {
      return tokens_.Error(fmt::format("'{}' is no type of a variable", word));
    }
  }
  variable.align = std::max(variable.align, static_cast<int64_t>(element_bytes));
  variable.name = tokens_.Take();
  variable.bytes = element_bytes;
  while (tokens_.TakeIf("[")) {
    int64_t count = 0;
    if (tokens_.Peek() != "]") {
      HONE_ASSIGN_OR_RETURN(count, tokens_.TakeInteger());
    }
    variable.bytes *= static_cast<uint64_t>(count);
    HONE_RETURN_IF_ERROR(tokens_.Expect("]"));
  }
  if (variable.space == Space::kGlobal) {
    const uint64_t room = variable.bytes + static_cast<uint64_t>(variable.align);
    auto table = std::make_unique<std::vector<std::byte>>(room);
    variable.address = reinterpret_cast<uint64_t>(table->data());
    variable.address += -variable.address % static_cast<uint64_t>(variable.align);
    std::vector<std::byte> bytes(variable.bytes);
    if (tokens_.TakeIf("=")) HONE_RETURN_IF_ERROR(TakeInitial(&tokens_, element_bytes, &bytes));
    std::ranges::copy(bytes, reinterpret_cast<std::byte*>(variable.address));
    program_.table_memory.push_back({variable.address, variable.bytes});
    program_.tables.push_back(std::move(table));
  }
  HONE_RETURN_IF_ERROR(tokens_.Expect(";"));
  return variable;
}

absl::Status Parser::TakeRegisters(Decoder* decoder) {
  const std::string_view type = tokens_.Take();
  if (type != ".pred" && BytesOfType(type) == 0) return tokens_.Error(fmt::format("'{}' is no type", type));
  do {
    const std::string name(tokens_.Take());
    if (tokens_.TakeIf("<")) {
      HONE_ASSIGN_OR_RETURN(const int64_t count, tokens_.TakeInteger());
      HONE_RETURN_IF_ERROR(tokens_.Expect(">"));
      for (int64_t n = 0; n < count; ++n) decoder->DeclareRegister(fmt::format("{}{}", name, n));
    } else {
      decoder->DeclareRegister(name);
    }
  } while (tokens_.TakeIf(","));
  return tokens_.Expect(";");
}

absl::Status Parser::TakeBody(Decoder* decoder) {
  HONE_RETURN_IF_ERROR(tokens_.Expect("{"));
  for (int depth = 1; depth > 0;) {
    if (tokens_.AtEnd()) return tokens_.Error("a '}' is missing");
    if (tokens_.TakeIf("{")) {
      ++depth;
      decoder->OpenScope();
    } else if (tokens_.TakeIf("}")) {
      --depth;
      decoder->CloseScope();
    } else if (tokens_.TakeIf(";")) {
      continue;
    } else if (tokens_.TakeIf(".reg")) {
      HONE_RETURN_IF_ERROR(TakeRegisters(decoder));
    } else if (tokens_.Peek() == ".pragma" || tokens_.Peek() == ".loc") {
      tokens_.SkipPast(";");
    } else if (std::ranges::count(kSpaces, tokens_.Peek()) > 0) {
      HONE_ASSIGN_OR_RETURN(Variable variable, TakeVariable(false));
      decoder->DeclareVariable(std::move(variable));
    } else if (tokens_.Peek(1) == ":") {
      HONE_RETURN_IF_ERROR(decoder->DeclareLabel(std::string(tokens_.Take())));
      tokens_.Take();
    } else {
      HONE_ASSIGN_OR_RETURN(const Statement statement, TakeStatement(&tokens_));
      HONE_RETURN_IF_ERROR(decoder->Decode(statement));
    }
  }
  return absl::OkStatus();
}

// Parses the parameters, and the directives about groups.
absl::Status Parser::TakeHead(Kernel* kernel, Decoder* decoder) {
  while (!tokens_.TakeIf(")")) {
    std::string_view word = tokens_.Take();
    if (word != ".param") return tokens_.Error("'.param' should stand");
    word = tokens_.Take();
    if (BytesOfType(word) != 8) {
      return absl::UnimplementedError(fmt::format("line {}: a parameter of {}", tokens_.line(), word));
    }
    while (tokens_.Peek().starts_with('.')) {
      if (tokens_.Take() == ".align") tokens_.Take();
    }
    decoder->DeclareParameter(std::string(tokens_.Take()));
    tokens_.TakeIf(",");
  }
  while (!tokens_.AtEnd() && tokens_.Peek() != "{") {
    const std::string_view word = tokens_.Take();
    if (word != ".reqntid" && word != ".reqnctapercluster") continue;
    int64_t product = 1;
    do {
      HONE_ASSIGN_OR_RETURN(const int64_t count, tokens_.TakeInteger());
      product *= count;
    } while (tokens_.TakeIf(","));
    (word == ".reqntid" ? kernel->lanes : kernel->cluster) = static_cast<uint32_t>(product);
  }
  return absl::OkStatus();
}

void Parser::SkipBody() {
  int depth = 0;
  do {
    const std::string_view word = tokens_.Take();
    depth += word == "{" ? 1 : word == "}" ? -1 : 0;
  } while (depth > 0 && !tokens_.AtEnd());
}

absl::Status Parser::TakeEntry() {
  Kernel kernel;
  kernel.name = tokens_.Take();
  Decoder decoder(&kernel, variables_);
  if (!wanted_(kernel.name)) {
    while (!tokens_.AtEnd() && tokens_.Peek() != "{") tokens_.Take();
    SkipBody();
    return absl::OkStatus();
  }
  if (tokens_.TakeIf("(")) HONE_RETURN_IF_ERROR(TakeHead(&kernel, &decoder));
  HONE_RETURN_IF_ERROR(TakeBody(&decoder));
  HONE_RETURN_IF_ERROR(decoder.Finish());
  program_.kernels.push_back(std::move(kernel));
  return absl::OkStatus();
}

absl::StatusOr<Program> Parser::Parse() {
  bool is_extern = false;
  while (!tokens_.AtEnd()) {
    const std::string_view word = tokens_.Peek();
    if (word == ".version" || word == ".address_size") {
      tokens_.Take();
      tokens_.Take();
    } else if (word == ".target") {
      do {
        tokens_.Take();
        tokens_.Take();
      } while (tokens_.Peek() == ",");
    } else if (word == ".visible" || word == ".extern" || word == ".weak") {
      is_extern = tokens_.Take() == ".extern";
    } else if (word == ".entry") {
      tokens_.Take();
      HONE_RETURN_IF_ERROR(TakeEntry());
    } else if (std::ranges::count(kSpaces, word) > 0) {
      HONE_ASSIGN_OR_RETURN(Variable variable, TakeVariable(is_extern));
      variables_.push_back(std::move(variable));
      is_extern = false;
    } else {
      return tokens_.Error("a directive that this machine does not know");
    }
  }
  return std::move(program_);
}

}  // namespace

const Kernel* Program::Find(std::string_view name) const {
  const auto it = std::ranges::find(kernels, name, &Kernel::name);
  return it == kernels.end() ? nullptr : &*it;
}

absl::StatusOr<Program> Parse(std::string_view text, const std::function<bool(std::string_view)>& wanted) {
  return Parser(text, wanted).Parse();
}

absl::Status Run(const Kernel& kernel, const Launch& launch) {
  if (launch.arguments.size() != kernel.parameters) {
    return absl::InvalidArgumentError(fmt::format("kernel '{}' has {} parameters and is given {}", kernel.name,
                                                  kernel.parameters, launch.arguments.size()));
  }
  if (kernel.lanes != 0 && launch.lanes != kernel.lanes) {
    return absl::InvalidArgumentError(
        fmt::format("kernel '{}' is for groups of {} lanes, not of {}", kernel.name, kernel.lanes, launch.lanes));
  }
  if (launch.groups % kernel.cluster != 0) {
    return absl::InvalidArgumentError(fmt::format("kernel '{}' is for clusters of {} groups, not for {} groups",
                                                  kernel.name, kernel.cluster, launch.groups));
  }
  Cluster cluster(kernel, launch);
  for (uint32_t first = 0; first < launch.groups; first += kernel.cluster) HONE_RETURN_IF_ERROR(cluster.Run(first));
  return cluster.CheckReadOnly();
}

}  // namespace hone::ptx
