// SPDX-License-Identifier: Apache-2.0
// Values as bytes, for what the launcher and its children tell each other in files of memory. Both ends are the same
// program, so the format is private. Unpacker may read bytes that a kernel has changed: it reads nothing beyond their
// end, and makes no more elements than there are bytes.
//
// A struct that is not trivially copyable has a function Fields(ends, value) beside its file's Pack and Unpack, which
// calls ends.All with its fields in a fixed order, for packing and unpacking.
#ifndef HONE_DEVICE_AGENT_VISIT_PACKING_H_
#define HONE_DEVICE_AGENT_VISIT_PACKING_H_

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hone::agent {

template <typename T>
concept Plain = std::is_trivially_copyable_v<T>;
// For parameters of Fields, which are const when they are packed.
template <typename T, typename Wanted>
concept Like = std::same_as<std::remove_const_t<T>, Wanted>;

class Packer {
 public:
  template <typename... Field>
  void All(const Field&... fields) {
    (One(fields), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void One(const T& value) {
    if constexpr (Plain<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      Fields(*this, value);
    }
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
  void Fail() { good_ = false; }

 private:
  template <typename T>
  void One(T& value) {
    if constexpr (Plain<T>) {
      if (const std::string_view bytes = Next(sizeof value); good_) std::memcpy(&value, bytes.data(), sizeof value);
    } else {
      Fields(*this, value);
    }
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

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_PACKING_H_
