// SPDX-License-Identifier: Apache-2.0
// C identifiers for the names of the IR, which may be anything.
#ifndef HONE_COMPILER_CODEGEN_OPENCL_NAMES_H_
#define HONE_COMPILER_CODEGEN_OPENCL_NAMES_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone::codegen::opencl {

// May stand in OpenCL C as it is: an identifier that is no keyword, type, macro or function of it, nor one of ours.
bool IsFree(std::string_view name);
// The name with "_" for what cannot stand in an identifier, and free.
std::string Identifier(std::string_view name);

// The names that are taken in the braces that are open.
class Names {
 public:
  std::string Take(std::string_view name);  // an identifier like the name that nothing visible has
  void OpenBrace() { opened_.push_back(taken_.size()); }
  void CloseBrace();

 private:
  std::vector<std::string> taken_;
  std::set<std::string, std::less<>> visible_;
  std::vector<size_t> opened_;
};

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_NAMES_H_
