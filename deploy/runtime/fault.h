// SPDX-License-Identifier: Apache-2.0
// The result of the runtime's functions: a status of the C interface with its text. The runtime does not use absl.
//
// The text says what is wrong, where, and what to do, in lower case, without a final period. hone_error() returns it.
#ifndef HONE_DEPLOY_RUNTIME_FAULT_H_
#define HONE_DEPLOY_RUNTIME_FAULT_H_

#include <string>
#include <utility>

#include "deploy/runtime/hone.h"

namespace hone::runtime {

struct [[nodiscard]] Fault {
  HoneStatus code = HONE_OK;
  std::string text;  // empty if ok

  bool ok() const { return code == HONE_OK; }
};

inline Fault InvalidArgument(std::string text) { return {HONE_INVALID_ARGUMENT, std::move(text)}; }
inline Fault BadPackage(std::string text) { return {HONE_BAD_PACKAGE, "bad package: " + std::move(text)}; }
inline Fault Incompatible(std::string text) { return {HONE_INCOMPATIBLE, std::move(text)}; }
inline Fault OutOfMemory(std::string text) { return {HONE_OUT_OF_MEMORY, std::move(text)}; }
inline Fault IoError(std::string text) { return {HONE_IO_ERROR, std::move(text)}; }

}  // namespace hone::runtime

#define HONE_RETURN_IF_FAULT(expr)                                                          \
  do {                                                                                      \
    if (::hone::runtime::Fault hone_fault_ = (expr); !hone_fault_.ok()) return hone_fault_; \
  } while (0)

#endif  // HONE_DEPLOY_RUNTIME_FAULT_H_
