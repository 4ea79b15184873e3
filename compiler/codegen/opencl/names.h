// SPDX-License-Identifier: Apache-2.0
// Turns names of the IR, which may be any text, into identifiers of OpenCL C.
#ifndef HONE_COMPILER_CODEGEN_OPENCL_NAMES_H_
#define HONE_COMPILER_CODEGEN_OPENCL_NAMES_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone::codegen::opencl {

// Whether the name can be used as it is: an identifier other than a keyword, type, macro or function of OpenCL C, or a
// function of the prelude.
bool IsFree(std::string_view name);
// A free identifier (IsFree) like the name, with "_" for characters that an identifier cannot have.
std::string Identifier(std::string_view name);

// The identifiers that are visible in the innermost open brace.
class Names {
 public:
  // Returns an identifier like the name that is not visible yet, and makes it visible until its brace closes. With no
  // brace open it stays visible.
  std::string Take(std::string_view name);
  void OpenBrace() { opened_.push_back(taken_.size()); }
  void CloseBrace();

 private:
  std::vector<std::string> taken_;  // in the order of Take
  std::set<std::string, std::less<>> visible_;
  std::vector<size_t> opened_;  // per open brace: the size of taken_ when it opened
};

}  // namespace hone::codegen::opencl

#endif  // HONE_COMPILER_CODEGEN_OPENCL_NAMES_H_
