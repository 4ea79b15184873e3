// SPDX-License-Identifier: Apache-2.0
// One connection of the HTTP server, plain or over TLS: requests read one after the other, each answered before the
// next is read. For server.cc alone. Everything runs on the server's thread but what is said to be safe from any.
#ifndef HONE_TRACKER_HTTP_CONNECTION_H_
#define HONE_TRACKER_HTTP_CONNECTION_H_

#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tracker/http/exchange.h"
#include "tracker/http/server.h"

namespace hone::tracker {

using PlainStream = boost::beast::tcp_stream;
using TlsStream = boost::beast::ssl_stream<boost::beast::tcp_stream>;

// What a connection asks of its server.
struct ConnectionHost {
  HttpLimits limits;
  // Has the request answered; `done` is called at most once, by any thread: not where the server ends first.
  // on_its_way: to be let go when the answer is taken.
  using Done = std::function<void(HttpResponse answer, std::shared_ptr<void> on_its_way)>;
  std::function<void(HttpRequest request, Done done)> ask;
  std::function<void()> closed;  // once, at its end
};

template <typename Stream>
class Connection final : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  // `tls`: of a TlsStream, which it must outlive.
  Connection(Stream stream, std::string peer, ConnectionHost host, std::shared_ptr<boost::asio::ssl::context> tls)
      : tls_(std::move(tls)), stream_(std::move(stream)), peer_(std::move(peer)), host_(std::move(host)) {}
  ~Connection() { host_.closed(); }

  void Run();
  void Close();  // now

 private:
  using Error = boost::beast::error_code;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Message = boost::beast::http::response<boost::beast::http::string_body>;
  using Head = boost::beast::http::response<boost::beast::http::empty_body>;

  auto& Tcp() { return boost::beast::get_lowest_layer(stream_); }
  void SetPatience();
  void ReadRequest();
  bool AwaitsContinue() const;
  void SendContinue();
  void ReadBody();
  void TakeRequest(Error error);
  void Refuse(int status, const char* why);
  HttpRequest Request() const;
  void Answer(HttpResponse response, std::shared_ptr<void> on_its_way);
  void Send(HttpResponse response);
  void SendHead(const HttpResponse& response);
  void AfterAnswer(bool again);
  void BeginStream(HttpResponse response);
  void AwaitEnd();
  void Push(Chunk chunk);
  void WriteChunk();
  void Leave();
  void Drain();

  const std::shared_ptr<boost::asio::ssl::context> tls_;
  Stream stream_;
  const std::string peer_;
  const ConnectionHost host_;
  std::string certificate_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<Message> message_;
  std::shared_ptr<void> on_its_way_;  // the message
  std::optional<Head> head_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::empty_body>> head_serializer_;
  std::deque<Chunk> chunks_;  // the first one is being written
  size_t chunk_bytes_ = 0;    // of all of them
  bool ending_ = false;       // nothing more comes into the stream
  std::array<char, 1024> ignored_;
  size_t drained_ = 0;
  std::shared_ptr<void> subscription_;
};

extern template class Connection<PlainStream>;
extern template class Connection<TlsStream>;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_CONNECTION_H_
