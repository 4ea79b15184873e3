// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/post.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "base/status.h"

namespace hone::tracker {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Error = boost::system::error_code;

constexpr uint32_t kHeadBytesMax = 16 << 10;

class Post {
 public:
  Post(const NoticeUrl& url, absl::Duration timeout, const std::stop_token& stop)
      : url_(url),
        until_(std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout)),
        resolver_(io_),
        stop_(stop),
        interrupt_(stop, [this] { io_.stop(); }) {}

  absl::Status Run(const std::string& body) {
    asio::ip::tcp::resolver::results_type found;
    std::string host = url_.host;
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    HONE_RETURN_IF_ERROR(Await("look up the receiver's address", [&](auto done) {
      resolver_.async_resolve(host, url_.port, [&found, done](Error error, auto results) {
        found = results;
        done(error);
      });
    }));
    if (!url_.tls) {
      beast::tcp_stream stream(io_);
      HONE_RETURN_IF_ERROR(Connect(stream, found));
      return Exchange(stream, body);
    }
    asio::ssl::context tls(asio::ssl::context::tls_client);
    Error trusted;
    tls.set_default_verify_paths(trusted);
    tls.set_verify_mode(asio::ssl::verify_peer);
    tls.set_verify_callback(asio::ssl::host_name_verification(host));
    beast::ssl_stream<beast::tcp_stream> stream(io_, tls);
    SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
    HONE_RETURN_IF_ERROR(Connect(beast::get_lowest_layer(stream), found));
    HONE_RETURN_IF_ERROR(Await("set up TLS with the receiver", [&](auto done) {
      stream.async_handshake(asio::ssl::stream_base::client, [done](Error error) { done(error); });
    }));
    return Exchange(stream, body);
  }

 private:
  // Runs one step until it is done, the time is over, or the stop. what: the step, for the error text.
  template <typename Start>
  absl::Status Await(const char* what, Start start) {
    Error result = beast::error::timeout;
    io_.restart();  // also clears a stop that came between two steps, hence the check below
    if (!stop_.stop_requested()) {
      start([&result](Error error) { result = error; });
      io_.run_until(until_);
    }
    if (!result) return absl::OkStatus();
    if (stop_.stop_requested())
      return absl::UnavailableError(fmt::format("the tracker stopped before it could {}", what));
    if (!io_.stopped()) return absl::UnavailableError(fmt::format("cannot {} in time", what));
    return absl::UnavailableError(fmt::format("cannot {}: {}", what, result.message()));
  }

  absl::Status Connect(beast::tcp_stream& stream, const asio::ip::tcp::resolver::results_type& found) {
    return Await("connect",
                 [&](auto done) { stream.async_connect(found, [done](Error error, const auto&) { done(error); }); });
  }

  template <typename Stream>
  absl::Status Exchange(Stream& stream, const std::string& body) {
    http::request<http::string_body> request(http::verb::post, url_.target, 11);
    const bool usual = url_.port == (url_.tls ? "443" : "80");
    request.set(http::field::host, usual ? url_.host : url_.host + ":" + url_.port);
    request.set(http::field::user_agent, "hone-tracker");
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    request.body() = body;
    request.prepare_payload();
    HONE_RETURN_IF_ERROR(Await(
        "send", [&](auto done) { http::async_write(stream, request, [done](Error error, size_t) { done(error); }); }));
    http::response_parser<http::empty_body> answer;
    answer.header_limit(kHeadBytesMax);
    beast::flat_buffer buffer;
    HONE_RETURN_IF_ERROR(Await("read the receiver's answer", [&](auto done) {
      http::async_read_header(stream, buffer, answer, [done](Error error, size_t) { done(error); });
    }));
    const unsigned code = answer.get().result_int();
    if (code >= 200 && code < 300) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("the receiver answered {}{}", code,
                                              code >= 300 && code < 400 ? "; redirects are not followed" : ""));
  }

  const NoticeUrl& url_;
  const std::chrono::steady_clock::time_point until_;
  asio::io_context io_;
  asio::ip::tcp::resolver resolver_;
  const std::stop_token stop_;
  const std::stop_callback<std::function<void()>> interrupt_;
};

}  // namespace

absl::Status PostJson(const NoticeUrl& url, const std::string& body, absl::Duration timeout,
                      const std::stop_token& stop) {
  return Post(url, timeout, stop).Run(body);
}

}  // namespace hone::tracker
