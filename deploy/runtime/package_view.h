// A package's bytes, checked: the only way from a file to the structs of package_format.h.
//
// After ViewPackage has succeeded, every offset, count and id in the view is in range and every text is terminated, so
// that the rest of the runtime indexes without looking. Does not look into the shared object or the metadata, and does
// not ask whether this machine can run it (cpu_features.h, code_object.h).
#ifndef HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_
#define HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "deploy/runtime/fault.h"
#include "deploy/runtime/package_format.h"

namespace hone::runtime {

// Points into the bytes it was made from.
struct PackageView {
  const package::ManifestHeader* manifest = nullptr;
  std::span<const package::TensorEntry> tensors;
  std::span<const int64_t> shapes;
  std::span<const package::CallEntry> calls;
  std::span<const uint32_t> arguments, inputs, outputs;
  std::span<const package::CopyEntry> copies;
  std::span<const char> strings;
  std::span<const uint8_t> shared_object, constants;
  std::string_view metadata;  // a zero byte follows

  std::string_view Text(package::TextRef text) const { return {strings.data() + text.offset, text.bytes}; }
  std::span<const int64_t> Shape(const package::TensorEntry& tensor) const {
    return shapes.subspan(tensor.shape, tensor.rank);
  }
  std::span<const uint32_t> Arguments(const package::CallEntry& call) const {
    return arguments.subspan(call.arguments, call.argument_count);
  }
};

enum class ConstantsCheck { kFull, kTrust };  // kTrust leaves out the constants' checksum

// `file` starts on a page. BadPackage says what is wrong and where. *view is set only on success.
Fault ViewPackage(std::span<const uint8_t> file, ConstantsCheck check, PackageView* view);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_PACKAGE_VIEW_H_
