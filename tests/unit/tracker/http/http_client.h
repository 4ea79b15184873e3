// SPDX-License-Identifier: Apache-2.0
// A small HTTP client for tests. It can also send arbitrary bytes, which real clients do not.
#ifndef HONE_TESTS_UNIT_TRACKER_HTTP_HTTP_CLIENT_H_
#define HONE_TESTS_UNIT_TRACKER_HTTP_HTTP_CLIENT_H_

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "transport/transport.h"

namespace hone::tracker {

struct HttpReply {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class HttpClient {
 public:
  // tls: files of the identity to present; with only `authority`, none is presented; default: plain HTTP.
  explicit HttpClient(int port, const TlsFiles& tls = {}) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval timeout{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (connected_ && !tls.none()) StartTls(tls);
  }
  ~HttpClient() { close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }  // connected, and the TLS handshake is complete

  // May be called from another thread. Ends a Receive that waits, and all later ones.
  void Stop() { shutdown(socket_, SHUT_RDWR); }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ssl_ != nullptr ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                                        : send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Returns "" at the end of the connection.
  std::string Receive() {
    std::string bytes(65536, '\0');
    const auto got = ssl_ != nullptr ? SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                                     : recv(socket_, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }
  // Returns the next answer's status and headers without its body.
  HttpReply ReceiveHead() {
    HttpReply reply;
    size_t end;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos) {
      const std::string more = Receive();
      if (more.empty()) return reply;
      rest_ += more;
    }
    const std::string head = rest_.substr(0, end + 2);
    rest_.erase(0, end + 4);
    reply.status = std::atoi(head.substr(head.find(' ') + 1, 3).c_str());
    for (size_t at = head.find("\r\n") + 2; at < head.size(); at = head.find("\r\n", at) + 2) {
      const size_t colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(tolower(c));
      reply.headers[name] = head.substr(colon + 2, head.find("\r\n", at) - colon - 2);
    }
    return reply;
  }
  HttpReply ReceiveReply() {
    HttpReply reply = ReceiveHead();
    const size_t length = std::strtoul(reply.headers["content-length"].c_str(), nullptr, 10);
    while (rest_.size() < length) {
      const std::string more = Receive();
      if (more.empty()) break;
      rest_ += more;
    }
    reply.body = rest_.substr(0, length);
    rest_.erase(0, std::min(length, rest_.size()));
    return reply;
  }
  // Reads the next line of a stream, without its line end. Returns false at the end of the connection.
  bool ReceiveLine(std::string& line) {
    size_t end;
    while ((end = rest_.find('\n')) == std::string::npos) {
      const std::string more = Receive();
      if (more.empty()) return false;
      rest_ += more;
    }
    line = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    return true;
  }
  // headers: lines that each end with "\r
  // ".
  HttpReply Ask(const std::string& method, const std::string& target, const std::string& headers = "",
                const std::string& body = "") {
    const std::string host = headers.find("Host:") == std::string::npos ? "Host: localhost\r\n" : "";
    const std::string length = body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    Send(method + " " + target + " HTTP/1.1\r\n" + host + headers + length + "\r\n" + body);
    return ReceiveReply();
  }

 private:
  void StartTls(const TlsFiles& tls) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_load_verify_locations(context_.get(), tls.authority.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (!tls.identity.empty()) {
      SSL_CTX_use_certificate_chain_file(context_.get(), tls.identity.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), tls.identity.c_str(), SSL_FILETYPE_PEM);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_);
    SSL_set1_host(ssl_.get(), "localhost");
    connected_ = SSL_connect(ssl_.get()) == 1;
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  const int socket_;
  bool connected_ = false;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  std::string rest_;  // received bytes that were not parsed yet
};

}  // namespace hone::tracker

#endif  // HONE_TESTS_UNIT_TRACKER_HTTP_HTTP_CLIENT_H_
