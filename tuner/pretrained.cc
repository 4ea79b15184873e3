#include "tuner/pretrained.h"

#include <string_view>

#include "base/status.h"

// The file as it is; HONE_PRETRAINED_CPU is its path.
asm(".section .rodata\n"
    "hone_pretrained_cpu_begin: .incbin \"" HONE_PRETRAINED_CPU
    "\"\n"
    "hone_pretrained_cpu_end: .byte 0\n"
    ".previous\n");
extern "C" const char hone_pretrained_cpu_begin[], hone_pretrained_cpu_end[];

namespace hone::tuner {

absl::StatusOr<std::shared_ptr<const CostModel>> PretrainedModel(const target::Target& target) {
  if (target.kind != target::Kind::kCpu) return std::shared_ptr<const CostModel>();
  const std::string_view bytes(hone_pretrained_cpu_begin,
                               static_cast<size_t>(hone_pretrained_cpu_end - hone_pretrained_cpu_begin));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const CostModel> model, BoostedModel::Load(bytes));
  return model;
}

}  // namespace hone::tuner
