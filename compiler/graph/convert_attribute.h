// SPDX-License-Identifier: Apache-2.0
// Converts an attribute's value to the type that an operator needs, where old exporters wrote a similar one.
//
// A conversion is made only if no other meaning is possible: a list of one for a number, 2.0 for 2, 2 for 2.0, "2" for
// 2. Not here: which attributes an operator has (ops/signatures.h).
#ifndef HONE_COMPILER_GRAPH_CONVERT_ATTRIBUTE_H_
#define HONE_COMPILER_GRAPH_CONVERT_ATTRIBUTE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace hone::graph {

// One element in another type; nullopt if it has no certain meaning there. To a string converts only a string.
std::optional<int64_t> ElementAsInt(int64_t value);
std::optional<int64_t> ElementAsInt(double value);              // if it is an integer
std::optional<int64_t> ElementAsInt(const std::string& value);  // if all of it is a number
std::optional<double> ElementAsFloat(int64_t value);
std::optional<double> ElementAsFloat(double value);
std::optional<double> ElementAsFloat(const std::string& value);

namespace convert_attribute_internal {

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};

template <typename To, typename From>
std::optional<To> ConvertElement(const From& value) {
  if constexpr (std::is_same_v<To, From>) return value;
  if constexpr (std::is_same_v<To, int64_t>) return ElementAsInt(value);
  if constexpr (std::is_same_v<To, double>) return ElementAsFloat(value);
  return std::nullopt;
}

template <typename From>
inline constexpr bool kIsScalar =
    std::is_same_v<From, int64_t> || std::is_same_v<From, double> || std::is_same_v<From, std::string>;

}  // namespace convert_attribute_internal

// Returns the value as a T: int64_t, double, std::string, or a std::vector of one of these. nullopt if the conversion
// is not certain, or if the value is a tensor, a graph or an error. Value is a variant that holds such types.
template <typename T, typename Value>
std::optional<T> ConvertAttribute(const Value& value) {
  using convert_attribute_internal::ConvertElement;
  using convert_attribute_internal::IsList;
  using convert_attribute_internal::kIsScalar;
  return std::visit(
      []<typename From>(const From& from) -> std::optional<T> {
        if constexpr (IsList<T>::value) {
          T list;
          const auto append = [&](const auto& element) {
            const auto converted = ConvertElement<typename T::value_type>(element);
            if (converted) list.push_back(*converted);
            return converted.has_value();
          };
          if constexpr (kIsScalar<From>) {
            if (append(from)) return list;
          } else if constexpr (IsList<From>::value) {
            for (const auto& element : from) {
              if (!append(element)) return std::nullopt;
            }
            return list;
          }
          return std::nullopt;
        } else if constexpr (kIsScalar<From>) {
          return ConvertElement<T>(from);
        } else if constexpr (IsList<From>::value) {
          return from.size() == 1 ? ConvertElement<T>(from.front()) : std::nullopt;
        } else {
          return std::nullopt;
        }
      },
      value);
}

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_CONVERT_ATTRIBUTE_H_
