// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <charconv>

#include "tracker/http/api.h"

namespace hone::tracker {

std::string ApiCall::Parameter(std::string_view name) const {
  const auto found = target.query.find(name);
  return found == target.query.end() ? "" : found->second;
}

absl::StatusOr<int64_t> ApiCall::Number(std::string_view name, int64_t fallback, int64_t min, int64_t max) const {
  const std::string text = Parameter(name);
  if (text.empty()) return fallback;
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stopped == end && number >= min && number <= max) return number;
  return absl::InvalidArgumentError(fmt::format("{}={}: give a number from {} to {}", name, text, min, max));
}

absl::StatusOr<std::string> ApiCall::Text(const std::string& name) const {
  const auto found = body.find(name);
  if (found == body.end()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  return absl::InvalidArgumentError(fmt::format("'{}' in the body must be a string", name));
}

HttpResponse JsonResponse(const Json& document) {
  return {.body = document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

absl::Status ReadBody(const ApiCall& call, std::string_view what, google::protobuf::Message* message) {
  const auto read = google::protobuf::util::JsonStringToMessage(call.request.body, message);
  if (read.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("the body is no {}: {}", what, std::string(read.message())));
}

NoteChange NoteOf(const ApiContext& context, const ApiCall& call, std::string_view method) {
  return [&context, &call, method](std::string_view object, const absl::Status& result) {
    context.visitors->Note(call.visitor, call.request.peer, method, object, result);
  };
}

}  // namespace hone::tracker
