// SPDX-License-Identifier: Apache-2.0
// One connection of the HTTP server, plain or over TLS. It reads one request at a time and answers it before it reads
// the next. Used only by server.cc. Everything runs on the server's thread, except where a comment says that any thread
// may call.
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

// The functions of the server that a connection calls.
struct ConnectionHost {
  HttpLimits limits;
  HttpServer::BodyLimit body_limit;  // as Options::body_limit
  // Reserves memory for a long body until the token is destroyed. Null: there is none at the moment, or none for this
  // client.
  std::function<std::shared_ptr<void>(const HttpRequest& head, uint64_t bytes)> reserve;
  // Answers the request. `done` is called at most once, by any thread; never if the server ends first. delivery: the
  // token that counts the answer's memory (client_memory.h); null for an empty answer. It must be destroyed once the
  // answer is sent.
  using Done = std::function<void(HttpResponse answer, std::shared_ptr<void> delivery)>;
  std::function<void(HttpRequest request, Done done)> ask;
  std::function<void()> closed;  // called once, when the connection is destroyed
};

template <typename Stream>
class Connection final : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  // tls: the context of a TlsStream, which must outlive the stream; null for plain HTTP.
  Connection(Stream stream, std::string peer, ConnectionHost host, std::shared_ptr<boost::asio::ssl::context> tls)
      : tls_(std::move(tls)), stream_(std::move(stream)), peer_(std::move(peer)), host_(std::move(host)) {}
  ~Connection() { host_.closed(); }

  void Run();
  void Close();  // at once, without sending what is left

 private:
  using Error = boost::beast::error_code;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Message = boost::beast::http::response<boost::beast::http::string_body>;
  using Head = boost::beast::http::response<boost::beast::http::empty_body>;

  auto& Tcp() { return boost::beast::get_lowest_layer(stream_); }
  void SetTimeout();
  void ReadRequest();
  // Whether the body may come, after its head. If not, the request was refused.
  bool AdmitBody();
  bool AwaitsContinue() const;
  void SendContinue();
  void ReadBody();
  void TakeRequest(Error error);
  void Refuse(int status, const char* why);
  void Refuse(HttpResponse refusal);
  HttpRequest Request();  // takes the body out of parser_
  void Answer(HttpResponse response, std::shared_ptr<void> delivery);
  void Send(HttpResponse response);
  void SendHead(const HttpResponse& response);
  void AfterAnswer(bool again);
  void BeginStream(HttpResponse response);
  void AwaitEnd();
  void Push(Chunk chunk);
  void WriteChunk();
  void Leave();
  void Linger();
  void Drain();

  const std::shared_ptr<boost::asio::ssl::context> tls_;
  Stream stream_;
  const std::string peer_;
  const ConnectionHost host_;
  std::string certificate_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<Message> message_;
  std::shared_ptr<void> delivery_;  // the token of message_
  std::shared_ptr<void> reserved_;  // memory of the request's body, if that is long
  std::optional<Head> head_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::empty_body>> head_serializer_;
  std::deque<Chunk> chunks_;  // the first one is being written
  size_t chunk_bytes_ = 0;    // of all chunks_
  bool ending_ = false;       // the stream ends after chunks_
  std::array<char, 1024> ignored_;
  size_t drained_ = 0;
  std::shared_ptr<void> subscription_;
};

extern template class Connection<PlainStream>;
extern template class Connection<TlsStream>;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_CONNECTION_H_
