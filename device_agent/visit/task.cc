// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/task.h"

#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/kernel_interface.h"

namespace hone::agent {
namespace {

template <typename T>
concept Plain = std::is_trivially_copyable_v<T>;

class Packer {
 public:
  template <typename... Field>
  void All(const Field&... fields) {
    (One(fields), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <Plain T>
  void One(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void One(const std::string& text) {
    One(text.size());
    bytes_ += text;
  }
  template <typename T>
  void One(const std::vector<T>& values) {
    One(values.size());
    for (const T& value : values) One(value);
  }
  void One(const VisitBuffer& b) { All(b.name, b.role, b.dtype, b.elements, b.bytes, b.low, b.high, b.rounded); }
  void One(const VisitKernel& k) { All(Print(k.interface), k.code_offset, k.code_bytes); }
  void One(const VisitCandidate& c) { All(c.id, c.kernel); }

  std::string bytes_;
};

// Reads values. If there are too few bytes, all further values are empty and good() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  template <typename... Field>
  void All(Field&... fields) {
    (One(fields), ...);
  }
  bool good() const { return good_; }

 private:
  template <Plain T>
  void One(T& value) {
    if (const std::string_view bytes = Next(sizeof value); good_) std::memcpy(&value, bytes.data(), sizeof value);
  }
  void One(std::string& text) {
    size_t size = 0;
    One(size);
    text = Next(size);
  }
  template <typename T>
  void One(std::vector<T>& values) {
    size_t size = 0;
    One(size);
    values.clear();
    for (size_t i = 0; i < size && good_; ++i) One(values.emplace_back());
  }
  void One(VisitBuffer& b) { All(b.name, b.role, b.dtype, b.elements, b.bytes, b.low, b.high, b.rounded); }
  void One(VisitKernel& k) {
    std::string text, error;
    All(text, k.code_offset, k.code_bytes);
    std::optional<KernelInterface> interface = ParseKernelInterface(text, &error);
    good_ &= interface.has_value();
    if (good_) k.interface = *std::move(interface);
  }
  void One(VisitCandidate& c) { All(c.id, c.kernel); }

  std::string_view Next(size_t size) {
    good_ &= size <= bytes_.size();
    if (!good_) return {};
    const std::string_view next = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return next;
  }

  std::string_view bytes_;
  bool good_ = true;
};

// Visits all fields of both in a fixed order, for packing and unpacking.
template <typename Ends, typename Task, typename Batch>
void Fields(Ends& ends, Task& task, Batch& batch) {
  ends.All(task.purpose, task.deadline, task.cold_bytes, task.to_verify, task.verified);
  ends.All(batch.workload_digest, batch.buffers, batch.points, batch.reference, batch.candidates, batch.tolerance,
           batch.fill_seed, batch.threads, batch.policy, batch.final);
}

}  // namespace

std::string Pack(const VisitTask& task, const VisitBatch& batch) {
  Packer packer;
  Fields(packer, task, batch);
  return packer.Take();
}

absl::Status Unpack(std::string_view bytes, VisitTask& task, VisitBatch& batch) {
  Unpacker unpacker(bytes);
  Fields(unpacker, task, batch);
  return unpacker.good() ? absl::OkStatus() : absl::InternalError("a child process of the visit cannot read its task");
}

}  // namespace hone::agent
