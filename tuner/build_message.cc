// SPDX-License-Identifier: Apache-2.0
#include "tuner/build_message.h"

#include <cstring>

namespace hone::tuner {
namespace {

class Writer {
 public:
  void Put(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Put(std::string_view text) {
    Put(static_cast<int64_t>(text.size()));
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads the bytes of a Writer. After the first value that does not fit, all further values are empty and AtEnd is
// false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  int64_t Integer() {
    int64_t value = 0;
    if (bytes_.size() < sizeof value) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string Text() {
    const int64_t size = Integer();
    if (size < 0 || static_cast<uint64_t>(size) > bytes_.size()) {
      ok_ = false;
      return "";
    }
    std::string text(bytes_.substr(0, static_cast<size_t>(size)));
    bytes_.remove_prefix(static_cast<size_t>(size));
    return text;
  }
  // The number of elements that follow, each of at least 8 bytes.
  int64_t Count() {
    const int64_t count = Integer();
    if (count >= 0 && static_cast<uint64_t>(count) <= bytes_.size() / sizeof(int64_t)) return count;
    ok_ = false;
    return 0;
  }
  // last: the enum's largest value.
  template <typename Enum>
  Enum Choice(Enum last) {
    const int64_t value = Integer();
    if (value < 0 || value > static_cast<int64_t>(last)) ok_ = false;
    return ok_ ? static_cast<Enum>(value) : Enum();
  }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace

std::string Encode(const BuildRequest& request) {
  Writer out;
  out.Put(static_cast<int64_t>(request.kind));
  for (const std::string* text : {&request.workload, &request.target, &request.schedule, &request.name}) {
    out.Put(*text);
  }
  out.Put(static_cast<int64_t>(request.objects.size()));
  for (const std::string& object : request.objects) out.Put(object);
  return out.Take();
}

std::optional<BuildRequest> DecodeRequest(std::string_view bytes) {
  Reader in(bytes);
  BuildRequest request;
  request.kind = in.Choice(BuildRequest::Kind::kLink);
  for (std::string* text : {&request.workload, &request.target, &request.schedule, &request.name}) {
    *text = in.Text();
  }
  const int64_t objects = in.Count();
  for (int64_t i = 0; i < objects; ++i) request.objects.push_back(in.Text());
  return in.AtEnd() ? std::optional(std::move(request)) : std::nullopt;
}

std::string Encode(const BuildReply& reply) {
  Writer out;
  out.Put(static_cast<int64_t>(reply.kind));
  out.Put(static_cast<int64_t>(reply.failure));
  out.Put(reply.text);
  out.Put(reply.bytes);
  out.Put(reply.prepare);
  out.Put(reply.kernel.name.empty() ? "" : Print(reply.kernel));
  out.Put(reply.drawback);
  out.Put(static_cast<int64_t>(reply.ranges.size()));
  for (const CodeRange& range : reply.ranges) {
    out.Put(range.offset);
    out.Put(range.bytes);
  }
  return out.Take();
}

std::optional<BuildReply> DecodeReply(std::string_view bytes) {
  Reader in(bytes);
  BuildReply reply;
  reply.kind = in.Choice(BuildReply::Kind::kFailed);
  const std::optional<FailureKind> failure = FailureKindFromNumber(in.Integer());
  if (!failure.has_value()) return std::nullopt;
  reply.failure = *failure;
  reply.text = in.Text();
  reply.bytes = in.Text();
  reply.prepare = in.Text();
  if (const std::string kernel = in.Text(); !kernel.empty()) {
    std::string error;
    std::optional<KernelInterface> parsed = ParseKernelInterface(kernel, &error);
    if (!parsed.has_value()) return std::nullopt;
    reply.kernel = *std::move(parsed);
  }
  reply.drawback = in.Text();
  const int64_t ranges = in.Count();
  for (int64_t i = 0; i < ranges; ++i) {
    const int64_t offset = in.Integer();
    reply.ranges.push_back({offset, in.Integer()});
  }
  return in.AtEnd() ? std::optional(std::move(reply)) : std::nullopt;
}

}  // namespace hone::tuner
