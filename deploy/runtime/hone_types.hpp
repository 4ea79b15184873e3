// SPDX-License-Identifier: Apache-2.0
// What the functions of hone.hpp take and return: results and errors, views of elements, types of elements, and
// descriptions of ports and calls. For C++17 and later. Not the runtime itself: programs include hone.hpp. Start at
// Result and Span.
#ifndef HONE_DEPLOY_RUNTIME_HONE_TYPES_HPP_
#define HONE_DEPLOY_RUNTIME_HONE_TYPES_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hone.h"

namespace hone {

// Why a call failed: its status, and a text that says what failed, where, and what to do.
struct Failure {
  HoneStatus status = HONE_OK;
  std::string text = {};
};

// A Failure as an exception.
class Error : public std::runtime_error {
 public:
  explicit Error(const Failure& failure) : std::runtime_error(failure.text), status_(failure.status) {}
  HoneStatus status() const noexcept { return status_; }

 private:
  HoneStatus status_;
};

// A value or the failure in its place, as std::expected<Value, Failure> of C++23. Result<> has no value.
template <typename Value = std::monostate>
class [[nodiscard]] Result {
 public:
  Result(Value value) : content_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: converts
  Result(Failure failure) : content_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT: converts

  bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  // If has_value():
  Value& operator*() & noexcept { return *std::get_if<0>(&content_); }
  const Value& operator*() const& noexcept { return *std::get_if<0>(&content_); }
  Value&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
  Value* operator->() noexcept { return std::get_if<0>(&content_); }
  const Value* operator->() const noexcept { return std::get_if<0>(&content_); }
  // If not:
  const Failure& error() const noexcept { return *std::get_if<1>(&content_); }

#if defined(__cpp_exceptions)
  // The value; throws the failure as an Error.
  Value value() && {
    if (!has_value()) throw Error(error());
    return *std::move(*this);
  }
#endif

 private:
  std::variant<Value, Failure> content_;
};

// A view of elements that belong to others, as std::span of C++20, which it converts to. It is a type of its own so
// that units compiled for C++17 and for C++20 fit together.
template <typename Element>
class Span {
 public:
  using value_type = std::remove_cv_t<Element>;

  constexpr Span() noexcept = default;
  constexpr Span(Element* data, std::size_t size) noexcept : data_(data), size_(size) {}
  // Of a container with data() and size(). Of a list only as an argument: the list lives until the end of the call.
  template <typename Container,
            typename = std::enable_if_t<std::is_convertible_v<
                std::remove_pointer_t<decltype(std::declval<Container&>().data())> (*)[], Element (*)[]>>>
  constexpr Span(Container&& container) noexcept : data_(container.data()), size_(container.size()) {}  // NOLINT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  template <typename Constant = Element, typename = std::enable_if_t<std::is_const_v<Constant>>>
  constexpr Span(std::initializer_list<value_type> list) noexcept : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr Element* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr Element* begin() const noexcept { return data_; }
  constexpr Element* end() const noexcept { return data_ + size_; }
  constexpr Element& operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  Element* data_ = nullptr;
  std::size_t size_ = 0;
};

// Elements of types that C++17 has not. The bits are those of IEEE binary16, and the upper half of a float.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// The type of an element of a tensor. std::byte stands for any type, and then counts bytes.
template <typename Element>
constexpr DLDataType ElementType() {
  static_assert(std::is_arithmetic_v<Element> || std::is_same_v<Element, Float16> || std::is_same_v<Element, BFloat16>,
                "a tensor has numbers, bool, hone::Float16 or hone::BFloat16; std::byte reads any of them");
  constexpr auto kBits = static_cast<std::uint8_t>(8 * sizeof(Element));
  if constexpr (std::is_same_v<Element, bool>)
    return {kDLBool, kBits, 1};
  else if constexpr (std::is_same_v<Element, BFloat16>)
    return {kDLBfloat, kBits, 1};
  else if constexpr (std::is_integral_v<Element>)
    return {std::is_signed_v<Element> ? kDLInt : kDLUInt, kBits, 1};
  else
    return {kDLFloat, kBits, 1};
}

// Names an input or output: by its name in the model, or by its index, from 0.
class PortKey {
 public:
  PortKey(const char* name) : name_(name) {}                       // NOLINT: converts
  PortKey(std::string_view name) : name_(name) {}                  // NOLINT: converts
  PortKey(const std::string& name) : name_(name) {}                // NOLINT: converts
  PortKey(std::size_t index) : index_(index) {}                    // NOLINT: converts
  PortKey(int index) : index_(static_cast<std::size_t>(index)) {}  // NOLINT: converts, so that 0 is no null pointer

  bool is_name() const noexcept { return name_.data() != nullptr; }
  std::string_view name() const noexcept { return name_; }
  std::size_t index() const noexcept { return index_; }

 private:
  std::string_view name_ = {};
  std::size_t index_ = 0;
};

// The description of an input or output. The name and the shape, which has the current extents, belong to the session.
struct Port {
  std::string_view name;
  DLDataType dtype;
  Span<const std::int64_t> shape;
  std::uint64_t bytes;
};

// A kernel call of a profiled run: its kernel, the target of the unit that computes it, and the nodes of the ONNX file
// that it computes. The texts belong to the session.
struct CallTime {
  std::string_view kernel, target;
  double seconds;
  std::vector<std::string_view> nodes;
};

}  // namespace hone

#endif  // HONE_DEPLOY_RUNTIME_HONE_TYPES_HPP_
