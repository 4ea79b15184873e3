// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/opencl/names.h"

#include <algorithm>
#include <cctype>

namespace hone::codegen::opencl {
namespace {

// clang-format off
constexpr std::string_view kWords[] = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool", "half", "quad",
    "uchar", "ushort", "uint", "ulong", "complex", "imaginary", "true", "false", "kernel", "global", "local",
    "constant", "private", "generic", "pipe", "uniform", "asm", "typeof", "linux", "unix", "main", "printf", "barrier",
    "exp", "log", "tanh", "erf", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh", "fma", "fmod", "rint", "floor", "ceil", "trunc", "sqrt", "fabs", "min", "max", "select", "abs"};
constexpr std::string_view kVectors[] = {"char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "float",
                                         "double", "half", "bool", "quad"};
constexpr std::string_view kBeginnings[] = {"op_", "get_", "convert_", "as_", "vload", "vstore", "read_", "write_",
                                            "image", "work_group_", "sub_group_", "mem_fence", "atomic_", "atom_"};
// clang-format on

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool IsFree(std::string_view name) {
  if (name.empty() || !IsLetter(name[0])) return false;  // names with a leading "_" are reserved
  if (!std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }))
    return false;
  if (std::ranges::find(kWords, name) != std::end(kWords)) return false;
  if (name.ends_with("_t")) return false;
  for (const std::string_view beginning : kBeginnings) {
    if (name.starts_with(beginning)) return false;
  }
  const std::string_view type = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (type != name && std::ranges::find(kVectors, type) != std::end(kVectors)) return false;
  // Names in capitals may be macros.
  return name.size() == 1 || std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string Identifier(std::string_view name) {
  std::string result;
  for (const char c : name) result += IsLetter(c) || IsDigit(c) ? c : '_';
  if (result.empty() || !IsLetter(result[0])) result = "v" + result;
  if (!IsFree(result)) result = "v_" + result;
  return result;
}

std::string Names::Take(std::string_view name) {
  const std::string base = Identifier(name);
  std::string result = base;
  for (int n = 2; visible_.contains(result); ++n) result = base + "_" + std::to_string(n);
  visible_.insert(result);
  taken_.push_back(result);
  return result;
}

void Names::CloseBrace() {
  while (taken_.size() > opened_.back()) {
    visible_.erase(taken_.back());
    taken_.pop_back();
  }
  opened_.pop_back();
}

}  // namespace hone::codegen::opencl
