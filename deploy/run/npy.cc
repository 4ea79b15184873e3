// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "deploy/runtime/dtype.h"

namespace hone::run {
namespace {

using package::DType;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kHeaderBytesMax = size_t{1} << 20;  // bytes; usual headers have about a hundred

struct TypeCode {
  DType dtype;
  std::string_view code;  // without the byte order
};
constexpr TypeCode kTypeCodes[] = {
    {DType::kBool, "b1"},    {DType::kInt8, "i1"},    {DType::kInt16, "i2"},    {DType::kInt32, "i4"},
    {DType::kInt64, "i8"},   {DType::kUInt8, "u1"},   {DType::kUInt16, "u2"},   {DType::kUInt32, "u4"},
    {DType::kUInt64, "u8"},  {DType::kFloat16, "f2"}, {DType::kBFloat16, "V2"}, {DType::kFloat32, "f4"},
    {DType::kFloat64, "f8"},
};

absl::StatusOr<DType> ParseDescr(std::string_view descr) {
  if (!descr.empty() && descr[0] == '>' && descr.substr(1) != "u1" && descr.substr(1) != "i1") {
    return absl::UnimplementedError(
        fmt::format("its type '{}' is big-endian; save it with .astype('<{}')", descr, descr.substr(1)));
  }
  for (const TypeCode& type : kTypeCodes) {
    if (!descr.empty() && descr.substr(1) == type.code) return type.dtype;
  }
  return absl::UnimplementedError(fmt::format(
      "its type '{}' is not supported by packages; use bool, integers, f16, bf16 (as V2), f32 or f64", descr));
}

// Parses the header, a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  absl::Status Parse(NpyHeader& header) {
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Take('{')) return Malformed("a '{'");
    while (!Take('}')) {
      std::string_view key;
      if (!TakeString(&key) || !Take(':')) return Malformed("a key and a ':'");
      if (key == "descr") {
        std::string_view descr;
        if (Peek('[')) return absl::UnimplementedError("it is an array of records; save its fields as arrays");
        if (!TakeString(&descr)) return Malformed("a type");
        HONE_ASSIGN_OR_RETURN(header.dtype, ParseDescr(descr));
        has_descr = true;
      } else if (key == "fortran_order") {
        if (!TakeBool(&header.fortran_order)) return Malformed("True or False");
        has_order = true;
      } else if (key == "shape") {
        if (!TakeShape(&header.shape)) return Malformed("a shape");
        has_shape = true;
      } else {
        return Malformed("descr, fortran_order or shape");
      }
      if (!Take(',') && !Peek('}')) return Malformed("a ',' or a '}'");
    }
    return has_descr && has_order && has_shape ? absl::OkStatus() : Malformed("descr, fortran_order and shape");
  }

 private:
  static absl::Status Malformed(std::string_view expected) {
    return absl::DataLossError(fmt::format("its .npy header is damaged: {} expected", expected));
  }

  void SkipSpace() {
    const size_t start = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(start == std::string_view::npos ? rest_.size() : start);
  }
  bool Peek(char c) {
    SkipSpace();
    return !rest_.empty() && rest_[0] == c;
  }
  bool Take(char c) {
    if (!Peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeString(std::string_view* text) {
    if (!Peek('\'') && !Peek('"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return false;
    *text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool TakeBool(bool* value) {
    SkipSpace();
    for (const auto& [word, meaning] : {std::pair<std::string_view, bool>("True", true), {"False", false}}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      *value = meaning;
      return true;
    }
    return false;
  }
  bool TakeShape(std::vector<int64_t>* shape) {
    if (!Take('(')) return false;
    shape->clear();
    while (!Take(')')) {
      SkipSpace();
      int64_t dimension = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dimension);
      if (error != std::errc() || dimension < 0 || shape->size() == package::kRankMax) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      shape->push_back(dimension);
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

// The size in bytes of all elements; kDataLoss if it overflows.
absl::StatusOr<uint64_t> BytesOf(const NpyHeader& header) {
  uint64_t bytes = package::SizeOf(header.dtype);
  for (const int64_t dimension : header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) {
      return absl::DataLossError(fmt::format("its shape {} is too large", ShapeText(header.shape)));
    }
  }
  return bytes;
}

std::vector<uint8_t> RowMajor(const NpyHeader& header, std::span<const uint8_t> column_major) {
  const size_t element = package::SizeOf(header.dtype), rank = header.shape.size();
  std::vector<uint8_t> result(column_major.size());
  std::vector<size_t> steps(rank);  // by dimension: bytes between neighbours in the column-major source
  size_t step = element;
  for (size_t d = 0; d < rank; ++d) {
    steps[d] = step;
    step *= static_cast<size_t>(header.shape[d]);
  }
  std::vector<int64_t> index(rank, 0);
  size_t source = 0;
  for (size_t target = 0; target < result.size(); target += element) {
    std::memcpy(result.data() + target, column_major.data() + source, element);
    for (size_t d = rank; d-- > 0;) {
      source += steps[d];
      if (++index[d] < header.shape[d]) break;
      source -= steps[d] * static_cast<size_t>(header.shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

absl::StatusOr<std::optional<NpyHeader>> ParseNpyHeader(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view known = text.substr(0, kMagic.size());
  if (known != kMagic.substr(0, known.size())) return absl::DataLossError("it is not an .npy array");
  if (text.size() < kMagic.size() + 6) return std::nullopt;
  const int version = bytes[kMagic.size()];
  if (version < 1 || version > 3)
    return absl::DataLossError(
        fmt::format("it is an .npy array of version {}, which hone cannot read (it reads 1 to 3)", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t text_start = kMagic.size() + 2 + length_bytes;
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) length = length << 8 | bytes[kMagic.size() + 2 + i];
  if (length > kHeaderBytesMax) return absl::DataLossError("its .npy header is damaged: far too long");
  if (text.size() < text_start + length) return std::nullopt;

  NpyHeader header;
  HONE_RETURN_IF_ERROR(HeaderParser(text.substr(text_start, length)).Parse(header));
  header.data_offset = text_start + length;
  HONE_ASSIGN_OR_RETURN(header.data_bytes, BytesOf(header));
  return header;
}

absl::StatusOr<Array> ParseNpy(std::span<const uint8_t> file) {
  HONE_ASSIGN_OR_RETURN(const std::optional<NpyHeader> header, ParseNpyHeader(file));
  if (!header) return absl::DataLossError("it ends inside its .npy header");
  const std::span<const uint8_t> data = file.subspan(header->data_offset);
  if (data.size() != header->data_bytes) {
    return absl::DataLossError(fmt::format("it has {} bytes of data, its shape {} of {} needs {}", data.size(),
                                           ShapeText(header->shape), package::Name(header->dtype), header->data_bytes));
  }
  if (header->fortran_order) return Array{header->dtype, header->shape, RowMajor(*header, data)};
  return Array{header->dtype, header->shape, {data.begin(), data.end()}};
}

std::string NpyPrefix(DType dtype, std::span<const int64_t> shape) {
  std::string_view code;
  for (const TypeCode& type : kTypeCodes) {
    if (type.dtype == dtype) code = type.code;
  }
  std::string dimensions = fmt::format("{}", fmt::join(shape, ", "));
  if (shape.size() == 1) dimensions += ",";  // a Python tuple of one element needs the comma
  const char order = package::SizeOf(dtype) == 1 ? '|' : '<';
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, code, dimensions);
  constexpr size_t kFixed = 10;  // magic, version, length
  header.append(63 - (kFixed + header.size()) % 64, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += '\x01';
  prefix += '\0';
  prefix += static_cast<char>(header.size() & 0xff);
  prefix += static_cast<char>(header.size() >> 8);
  return prefix + header;
}

}  // namespace hone::run
