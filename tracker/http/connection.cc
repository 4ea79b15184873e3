// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/connection.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::tracker {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// Headers of every answer: a page may load from and connect to this server only, and no site may show it in a frame.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src "
     "'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};
// Bytes that are read and ignored after the last answer: more than the longest body, so that a client that sends one
// before it reads gets its refusal.
constexpr size_t kDrainedBytesMax = size_t{64} << 20;

// Whether the answer has a Content-Length. In a 304 it would be the length of the body that is not sent.
bool HasLength(const HttpResponse& response) { return response.stream == nullptr && response.status != 304; }

template <typename Message>
void SetHeaders(const HttpResponse& response, Message& message) {
  message.result(static_cast<unsigned>(response.status));
  message.version(11);
  for (const auto& [name, value] : kHeaders) message.set(name, value);
  message.set(http::field::cache_control, "no-store");
  if (!response.type.empty()) message.set(http::field::content_type, response.type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
}

std::string PeerCertificate(SSL* ssl) {
  X509* certificate = SSL_get_peer_certificate(ssl);
  if (certificate == nullptr) return "";
  BIO* text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(text, certificate);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text, &bytes);
  std::string pem(bytes, static_cast<size_t>(size));
  BIO_free(text);
  X509_free(certificate);
  return pem;
}

std::string Lower(beast::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace

template <typename Stream>
void Connection<Stream>::Run() {
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    SetTimeout();
    stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](Error error) {
      if (error) return self->Close();
      self->certificate_ = PeerCertificate(self->stream_.native_handle());
      self->ReadRequest();
    });
  } else {
    ReadRequest();
  }
}

template <typename Stream>
void Connection<Stream>::Close() {
  Error ignored;
  Tcp().socket().close(ignored);
  subscription_.reset();
}

template <typename Stream>
void Connection<Stream>::SetTimeout() {
  Tcp().expires_after(absl::ToChronoMilliseconds(host_.limits.timeout));
}

template <typename Stream>
void Connection<Stream>::ReadRequest() {
  parser_.emplace();
  parser_->header_limit(host_.limits.header_bytes);
  parser_->body_limit(UINT64_MAX);  // AdmitBody decides; without a limit, Beast refuses every body
  SetTimeout();
  http::async_read_header(stream_, buffer_, *parser_, [self = this->shared_from_this()](Error error, size_t) {
    if (error || self->parser_->is_done()) return self->TakeRequest(error);
    if (!self->AdmitBody()) return;
    self->AwaitsContinue() ? self->SendContinue() : self->ReadBody();
  });
}

template <typename Stream>
bool Connection<Stream>::AdmitBody() {
  const HttpLimits& limits = host_.limits;
  parser_->body_limit(limits.body_bytes);
  const uint64_t bytes = parser_->content_length().value_or(0);
  if (bytes <= limits.body_bytes) return true;
  absl::StatusOr<uint64_t> limit = limits.body_bytes;
  const HttpRequest head = Request();
  if (host_.body_limit != nullptr) limit = host_.body_limit(head);
  if (!limit.ok()) {
    Refuse(ErrorResponse(limit.status()));
    return false;
  }
  if (bytes > *limit) {
    Refuse(413, "the request is too long");
    return false;
  }
  reserved_ = host_.reserve(head, bytes);
  if (reserved_ == nullptr) {
    Refuse(ErrorResponse(absl::UnavailableError("too many long requests at a time; try again in a moment")));
    return false;
  }
  parser_->body_limit(*limit);
  Tcp().expires_after(absl::ToChronoMilliseconds(limits.timeout) +
                      std::chrono::seconds(bytes / limits.long_body_bytes_per_second));
  return true;
}

// Whether the client sends the body only after a "100 Continue" (RFC 9110, 10.1.1).
template <typename Stream>
bool Connection<Stream>::AwaitsContinue() const {
  const auto& message = parser_->get();
  return message.version() >= 11 && buffer_.size() == 0 && beast::iequals(message[http::field::expect], "100-continue");
}

template <typename Stream>
void Connection<Stream>::SendContinue() {
  head_.emplace(http::status::continue_, 11);
  http::async_write(stream_, *head_, [self = this->shared_from_this()](Error error, size_t) {
    error ? self->Close() : self->ReadBody();
  });
}

template <typename Stream>
void Connection<Stream>::ReadBody() {
  http::async_read(stream_, buffer_, *parser_,
                   [self = this->shared_from_this()](Error error, size_t) { self->TakeRequest(error); });
}

template <typename Stream>
void Connection<Stream>::TakeRequest(Error error) {
  if (error == http::error::header_limit) return Refuse(431, "the header of the request is too long");
  if (error == http::error::body_limit) return Refuse(413, "the request is too long");
  if (error && error != http::error::end_of_stream &&
      error.category() == make_error_code(http::error::end_of_stream).category()) {
    return Refuse(400, "this is not an HTTP request");
  }
  if (error) return Leave();
  Tcp().expires_never();
  // Nothing is read until the answer comes; this callback keeps the connection alive.
  host_.ask(Request(), [self = this->shared_from_this()](HttpResponse response, std::shared_ptr<void> delivery) {
    asio::post(self->stream_.get_executor(),
               [self, response = std::move(response), delivery = std::move(delivery)]() mutable {
                 self->Answer(std::move(response), std::move(delivery));
               });
  });
}

template <typename Stream>
void Connection<Stream>::Refuse(int status, const char* why) {
  HttpResponse refusal = ErrorResponse(absl::InvalidArgumentError(why));
  refusal.status = status;
  Refuse(std::move(refusal));
}

template <typename Stream>
void Connection<Stream>::Refuse(HttpResponse refusal) {
  parser_.reset();  // nothing that follows is read as a request
  Send(std::move(refusal));
}

template <typename Stream>
HttpRequest Connection<Stream>::Request() {
  auto& message = parser_->get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string& value = request.headers[Lower(field.name_string())];
    if (!value.empty()) value += ", ";
    value += std::string(field.value());
  }
  request.body = std::move(message.body());
  request.peer = peer_;
  request.certificate_pem = certificate_;
  return request;
}

template <typename Stream>
void Connection<Stream>::Answer(HttpResponse response, std::shared_ptr<void> delivery) {
  reserved_.reset();
  if (!Tcp().socket().is_open()) return;
  if (parser_->get().method() == http::verb::head) return SendHead(response);
  if (response.stream != nullptr) return BeginStream(std::move(response));
  delivery_ = std::move(delivery);
  Send(std::move(response));
}

template <typename Stream>
void Connection<Stream>::Send(HttpResponse response) {
  message_.emplace();
  SetHeaders(response, *message_);
  const bool again = parser_.has_value() && parser_->get().keep_alive();
  message_->keep_alive(again);
  message_->body() = std::move(response.body);
  if (HasLength(response)) message_->prepare_payload();
  SetTimeout();
  http::async_write(stream_, *message_, [self = this->shared_from_this(), again](Error error, size_t) {
    if (error) return self->Close();
    self->AfterAnswer(again);
  });
}

template <typename Stream>
void Connection<Stream>::SendHead(const HttpResponse& response) {
  head_.emplace();
  SetHeaders(response, *head_);
  const bool again = parser_->get().keep_alive();
  head_->keep_alive(again);
  if (HasLength(response)) head_->content_length(response.body.size());
  SetTimeout();
  head_serializer_.emplace(*head_);
  http::async_write_header(stream_, *head_serializer_, [self = this->shared_from_this(), again](Error error, size_t) {
    if (error) return self->Close();
    self->AfterAnswer(again);
  });
}

template <typename Stream>
void Connection<Stream>::AfterAnswer(bool again) {
  message_.reset();
  delivery_.reset();
  again ? ReadRequest() : Leave();
}

// Sends the head of a stream and subscribes to its chunks. The body ends with the connection.
template <typename Stream>
void Connection<Stream>::BeginStream(HttpResponse response) {
  head_.emplace();
  SetHeaders(response, *head_);
  head_->keep_alive(false);
  head_serializer_.emplace(*head_);
  SetTimeout();
  http::async_write_header(
      stream_, *head_serializer_,
      [self = this->shared_from_this(), subscribe = std::move(response.stream)](Error error, size_t) {
        // If the connection was closed meanwhile, it must not subscribe, because the subscription would never end.
        if (error || !self->Tcp().socket().is_open()) return self->Close();
        self->AwaitEnd();
        // A weak pointer, so that the sender of chunks does not keep a closed connection alive.
        const std::weak_ptr<Connection> weak = self;
        self->subscription_ = subscribe([weak, executor = self->stream_.get_executor()](Chunk chunk) {
          asio::post(executor, [weak, chunk = std::move(chunk)]() mutable {
            if (const auto self = weak.lock()) self->Push(std::move(chunk));
          });
        });
      });
}

// Reads during a stream only to notice that the client has closed the connection.
template <typename Stream>
void Connection<Stream>::AwaitEnd() {
  Tcp().expires_never();
  stream_.async_read_some(asio::buffer(ignored_), [self = this->shared_from_this()](Error error, size_t) {
    error ? self->Close() : self->AwaitEnd();
  });
}

template <typename Stream>
void Connection<Stream>::Push(Chunk chunk) {
  if (ending_ || !Tcp().socket().is_open()) return;
  ending_ = chunk == nullptr;
  if (ending_ && chunks_.empty()) return Close();
  if (ending_) return;
  // The limit counts bytes instead of chunks, because missed events come as many small chunks at once.
  if (!chunks_.empty() && chunk_bytes_ + chunk->size() > host_.limits.stream_backlog) return Close();
  chunk_bytes_ += chunk->size();
  chunks_.push_back(std::move(chunk));
  if (chunks_.size() == 1) WriteChunk();
}

template <typename Stream>
void Connection<Stream>::WriteChunk() {
  SetTimeout();
  asio::async_write(stream_, asio::buffer(*chunks_.front()), [self = this->shared_from_this()](Error error, size_t) {
    if (error) return self->Close();
    self->chunk_bytes_ -= self->chunks_.front()->size();
    self->chunks_.pop_front();
    if (!self->chunks_.empty()) return self->WriteChunk();
    if (self->ending_) self->Close();
  });
}

// Closes the connection so that the answer still arrives. Closing a socket with unread input would reset the connection
// and might discard the answer, so the input is read first: the rest of a long body that was refused.
template <typename Stream>
void Connection<Stream>::Leave() {
  SetTimeout();
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    // It fails if the client sends more, but by then it has told the client that nothing follows.
    stream_.async_shutdown([self = this->shared_from_this()](Error) { self->Linger(); });
  } else {
    Linger();
  }
}

template <typename Stream>
void Connection<Stream>::Linger() {
  Error error;
  Tcp().socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  error ? Close() : Drain();
}

template <typename Stream>
void Connection<Stream>::Drain() {
  Tcp().async_read_some(asio::buffer(ignored_), [self = this->shared_from_this()](Error error, size_t bytes) {
    self->drained_ += bytes;
    error || self->drained_ > kDrainedBytesMax ? self->Close() : self->Drain();
  });
}

template class Connection<PlainStream>;
template class Connection<TlsStream>;

}  // namespace hone::tracker
