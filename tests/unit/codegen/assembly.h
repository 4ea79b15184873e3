// SPDX-License-Identifier: Apache-2.0
// The assembly of a func, for tests of single instructions.
#ifndef HONE_TESTS_UNIT_CODEGEN_ASSEMBLY_H_
#define HONE_TESTS_UNIT_CODEGEN_ASSEMBLY_H_

#include <span>
#include <string>
#include <string_view>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"

namespace hone::codegen {

// text: the func. On error it fails the test and returns "".
inline std::string AssemblyOfFunc(const std::string& text, std::string_view target, Effort effort = Effort::kKernel,
                                  Output output = Output::kAssembly) {
  const auto func = ir::ParseFunc(text);
  EXPECT_TRUE(func.ok()) << func.status() << "\n" << text;
  if (!func.ok()) return "";
  const auto assembly = Emit(std::span(&*func, 1), target::ParseTarget(target).value(), effort, output);
  EXPECT_TRUE(assembly.ok()) << assembly.status();
  return assembly.value_or("");
}

}  // namespace hone::codegen

#endif  // HONE_TESTS_UNIT_CODEGEN_ASSEMBLY_H_
