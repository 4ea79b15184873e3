// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_interface.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/element_type.h"

namespace hone {
namespace {

constexpr std::string_view kRoleNames[] = {"input", "constant", "packed", "output", "sizes", "workspace"};
constexpr int64_t kBufferBytesMax = int64_t{1} << 48;  // of one buffer: larger than any device, safe from overflow
constexpr int64_t kLaunchLanesMax = int64_t{1} << 31;  // limit of groups, of lanes, and of an index of a buffer

bool IsCIdentifier(std::string_view name) {
  const auto ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), ok);
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::optional<int64_t> Integer(std::string_view word, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > most) return std::nullopt;
  return value;
}

std::string PrintType(const KernelBuffer& buffer) {
  std::string text = buffer.dtype + "[";
  for (size_t d = 0; d < buffer.shape.size(); ++d) text += (d == 0 ? "" : ",") + std::to_string(buffer.shape[d]);
  return text + "]";
}

// Parses a type such as "f32[1,64]" into the buffer. False if it is no type, or larger than kBufferBytesMax.
bool ParseType(std::string_view word, KernelBuffer* buffer) {
  const size_t open = word.find('[');
  if (open == std::string_view::npos || word.back() != ']') return false;
  buffer->dtype = std::string(word.substr(0, open));
  int64_t bytes = BytesOfDType(buffer->dtype);
  if (bytes == 0) return false;
  std::string_view dims = word.substr(open + 1, word.size() - open - 2);
  while (!dims.empty()) {
    const size_t end = std::min(dims.find(','), dims.size());
    const auto extent = Integer(dims.substr(0, end), kBufferBytesMax);
    if (!extent.has_value()) return false;
    buffer->shape.push_back(*extent);
    if (__builtin_mul_overflow(bytes, *extent, &bytes) || bytes > kBufferBytesMax) return false;
    dims.remove_prefix(std::min(end + 1, dims.size()));
  }
  return true;
}

class InterfaceParser {
 public:
  std::optional<KernelInterface> Run(std::string_view text, std::string* error) {
    int number = 0;
    while (!text.empty()) {
      ++number;
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string problem = Line(Words(text.substr(0, end)));
      if (!problem.empty()) {
        *error = "line " + std::to_string(number) + ": " + problem;
        return std::nullopt;
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    *error = Whole();
    if (!error->empty()) return std::nullopt;
    return std::move(result_);
  }

 private:
  using Line_ = std::vector<std::string_view>;

  // Parses one line. Returns the problem, or "".
  std::string Line(const Line_& words) {
    if (words.empty()) return "is empty";
    if (words[0] == "kernel") return Name(words);
    if (words[0] == "scratch") return Scratch(words);
    if (words[0] == "step") return Step(words);
    if (words[0] == "prepare") return Launch(words, &result_.prepare);
    if (words[0] == "launch") return Launch(words, &result_.main);
    const auto role = std::find(std::begin(kRoleNames), std::end(kRoleNames), words[0]);
    if (role == std::end(kRoleNames)) return "'" + std::string(words[0]) + "' is not a known keyword";
    return Buffer(words, static_cast<BufferRole>(role - std::begin(kRoleNames)));
  }

  std::string Name(const Line_& words) {
    if (words.size() != 2 || !IsCIdentifier(words[1]) || !result_.name.empty()) return "expected one kernel name";
    result_.name = std::string(words[1]);
    return "";
  }

  std::string Scratch(const Line_& words) {
    if (words.size() != 3) return "expected the workspace bytes of main and of prepare";
    const auto main = Integer(words[1], kBufferBytesMax), prepare = Integer(words[2], kBufferBytesMax);
    if (!main.has_value() || !prepare.has_value()) return "has an invalid number of bytes";
    result_.workspace_bytes = *main;
    result_.prepare_workspace_bytes = *prepare;
    return "";
  }

  // Parses "step number 63" or "step add 0 1".
  std::string Step(const Line_& words) {
    const std::optional<SizeOp> op = words.size() < 3 ? std::nullopt : ParseSizeOp(words[1]);
    if (!op.has_value()) return "expected an operation on sizes";
    SizeStep step{*op, 0, 0, 0, 0};
    if (op == SizeOp::kNumber) {
      const auto [end, error] = std::from_chars(words[2].data(), words[2].data() + words[2].size(), step.number);
      if (words.size() != 3 || error != std::errc() || end != words[2].data() + words[2].size())
        return "expected a number";
    } else {
      const auto a = Integer(words[2], kLaunchLanesMax), b = Integer(words.back(), kLaunchLanesMax);
      if (words.size() != 4 || !a.has_value() || !b.has_value()) return "expected the numbers of two values";
      step.a = static_cast<uint32_t>(*a), step.b = static_cast<uint32_t>(*b);
    }
    result_.size_steps.push_back(step);
    return "";
  }

  std::string Buffer(const Line_& words, BufferRole role) {
    KernelBuffer buffer;
    buffer.role = role;
    if (words.size() < 2 || !ParseType(words[1], &buffer)) return "expected a type such as f32[1,64]";
    if (role == BufferRole::kWorkspace) {
      const auto offset = words.size() == 3 ? Integer(words[2], kBufferBytesMax) : std::nullopt;
      if (!offset.has_value()) return "expected the offset of the buffer in the workspace";
      buffer.offset = *offset;
    } else if (words.size() == 3 && words[2] == "unused") {
      buffer.used = false;
    } else if (words.size() != 2) {
      return "has words after the type";
    }
    const auto order = [](BufferRole r) { return r == BufferRole::kConstant ? 0 : static_cast<int>(r); };
    if (!result_.buffers.empty() && order(result_.buffers.back().role) > order(role)) return "is out of order";
    result_.buffers.push_back(std::move(buffer));
    return "";
  }

  static std::string Launch(const Line_& words, std::vector<KernelLaunch>* launches) {
    if (words.size() < 4 || !IsCIdentifier(words[1])) return "expected a function, groups and lanes";
    KernelLaunch launch{std::string(words[1]), 0, 0, {}};
    const auto groups = Integer(words[2], kLaunchLanesMax), lanes = Integer(words[3], kLaunchLanesMax);
    if (!groups.has_value() || !lanes.has_value() || (*groups == 0) != (*lanes == 0))
      return "has an invalid grid (groups and lanes)";
    launch.groups = *groups;
    launch.lanes = *lanes;
    size_t first = 4;
    if (words.size() > first + 1 && words[first] == "groups") {
      const auto value = Integer(words[first + 1], kLaunchLanesMax);
      if (!value.has_value() || *lanes == 0) return "has an invalid number of the value for its groups";
      launch.groups_value = static_cast<uint32_t>(*value);
      first += 2;
    }
    if (words.size() > first + 1 && words[first] == "shared") {
      const auto shared = Integer(words[first + 1], kBufferBytesMax);
      if (!shared.has_value() || *shared == 0 || *lanes == 0) return "has an invalid size of shared memory";
      launch.shared_bytes = *shared;
      first += 2;
    }
    for (size_t i = first; i < words.size(); ++i) {
      const auto argument = Integer(words[i], kLaunchLanesMax);
      if (!argument.has_value()) return "'" + std::string(words[i]) + "' is not the number of a buffer";
      launch.arguments.push_back(static_cast<uint32_t>(*argument));
    }
    launches->push_back(std::move(launch));
    return "";
  }

  // Checks the conditions that concern several lines. Returns the problem, or "".
  std::string Whole() const {
    if (result_.name.empty()) return "it has no name";
    const std::vector<uint32_t> outputs = result_.Of(BufferRole::kOutput);
    const bool computes = std::any_of(outputs.begin(), outputs.end(),
                                      [&](uint32_t output) { return result_.buffers[output].bytes() > 0; });
    if (result_.main.empty() && (computes || outputs.empty())) return "it has no launch";
    if (result_.prepare.empty() != result_.Of(BufferRole::kPacked).empty()) {
      return "packed buffers need launches of prepare, and launches of prepare need packed buffers";
    }
    const int64_t workspace = std::max(result_.workspace_bytes, result_.prepare_workspace_bytes);
    for (const KernelBuffer& buffer : result_.buffers) {
      if (buffer.role == BufferRole::kWorkspace && buffer.offset + buffer.bytes() > workspace) {
        return "a workspace buffer ends past the end of the workspace";
      }
    }
    const size_t sizes = result_.size_count();
    for (size_t i = 0; i < result_.size_steps.size(); ++i) {
      if (!IsValid(result_.size_steps[i], sizes + i)) return "step " + std::to_string(i) + " reads a later value";
    }
    for (const auto* launches : {&result_.prepare, &result_.main}) {
      const size_t values = launches == &result_.main ? sizes + result_.size_steps.size() : 0;
      for (const KernelLaunch& launch : *launches) {
        if (launch.groups_value.has_value() && *launch.groups_value >= values)
          return "launch of " + launch.function + " takes its groups from a value that does not exist";
        for (const uint32_t argument : launch.arguments) {
          if (argument >= result_.buffers.size())
            return "launch of " + launch.function + " uses a buffer that does not exist";
        }
      }
    }
    return "";
  }

  KernelInterface result_;
};

}  // namespace

int64_t BytesOfDType(std::string_view dtype) {
  const std::optional<DType> known = ParseDType(dtype);
  return known.has_value() ? SizeOf(*known) : 0;
}

int64_t KernelBuffer::bytes() const {
  int64_t bytes = BytesOfDType(dtype);
  for (const int64_t extent : shape) bytes *= extent;
  return bytes;
}

size_t KernelInterface::argument_count() const {
  return static_cast<size_t>(std::count_if(buffers.begin(), buffers.end(), [](const KernelBuffer& buffer) {
    return buffer.role != BufferRole::kWorkspace;
  }));
}

std::vector<uint32_t> KernelInterface::Of(BufferRole role) const {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].role == role) indices.push_back(i);
  }
  return indices;
}

size_t KernelInterface::size_count() const {
  const std::vector<uint32_t> sizes = Of(BufferRole::kSizes);
  return sizes.empty() || buffers[sizes[0]].shape.empty() ? 0 : static_cast<size_t>(buffers[sizes[0]].shape[0]);
}

std::vector<int64_t> KernelInterface::ComputeValues(std::span<const int64_t> sizes) const {
  std::vector<int64_t> values(sizes.begin(), sizes.end());
  values.resize(sizes.size() + size_steps.size());
  ComputeAll(size_steps, values);
  return values;
}

int64_t KernelLaunch::GroupsFor(std::span<const int64_t> values) const {
  return groups_value.has_value() ? std::clamp<int64_t>(values[*groups_value], 0, groups) : groups;
}

std::string Print(const KernelInterface& interface) {
  std::string text = "kernel " + interface.name + "\n";
  for (const KernelBuffer& buffer : interface.buffers) {
    text += std::string(kRoleNames[static_cast<size_t>(buffer.role)]) + " " + PrintType(buffer);
    if (buffer.role == BufferRole::kWorkspace) text += " " + std::to_string(buffer.offset);
    text += buffer.used ? "\n" : " unused\n";
  }
  text += "scratch " + std::to_string(interface.workspace_bytes) + " " +
          std::to_string(interface.prepare_workspace_bytes) + "\n";
  for (const SizeStep& step : interface.size_steps) {
    text += "step " + std::string(hone::Name(step.op)) + " ";
    text += step.op == SizeOp::kNumber ? std::to_string(step.number)
                                       : std::to_string(step.a) + " " + std::to_string(step.b);
    text += "\n";
  }
  const auto print = [&](const char* verb, const std::vector<KernelLaunch>& launches) {
    for (const KernelLaunch& launch : launches) {
      text += std::string(verb) + " " + launch.function + " " + std::to_string(launch.groups) + " " +
              std::to_string(launch.lanes);
      if (launch.groups_value.has_value()) text += " groups " + std::to_string(*launch.groups_value);
      if (launch.shared_bytes > 0) text += " shared " + std::to_string(launch.shared_bytes);
      for (const uint32_t argument : launch.arguments) text += " " + std::to_string(argument);
      text += "\n";
    }
  };
  print("prepare", interface.prepare);
  print("launch", interface.main);
  return text;
}

std::optional<KernelInterface> ParseKernelInterface(std::string_view text, std::string* error) {
  return InterfaceParser().Run(text, error);
}

}  // namespace hone
