// SPDX-License-Identifier: Apache-2.0
// The tracker's HTTP server: connections, TLS, limits and timeouts, on one thread. Not here: the meaning of requests. A
// handler answers them on a few other threads, so that a request that waits for a disk delays no connection.
//
// HTTP/1.1 on Boost.Beast (docs/decisions/0152). Every answer has the headers that forbid browsers to run scripts of
// other origins and to show the page in a frame. Clients that are too slow, send too much or open too many connections
// are cut off. Over TLS a client may present a certificate of the farm; an invalid one ends the handshake. Start at
// HttpServer::Start.
#ifndef HONE_TRACKER_HTTP_SERVER_H_
#define HONE_TRACKER_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/http/exchange.h"
#include "transport/transport.h"

namespace hone::tracker {

struct HttpLimits {
  int connections = 2000;
  int connections_per_address_max = 1000;  // of one AddressKey, so that one machine cannot take all
  int requests = 64;                       // requests in work or waiting; more are answered 503
  int requests_per_client = 2;             // requests of one client in work, so that handlers are left for others
  int waiting_per_client = 16;             // requests of one client that wait for that; more are answered 503
  // Memory of answers that are not sent completely: of all, and of one address. While they exceed it, requests are
  // answered 503. An answer has at most some MiB, so this is enough for hundreds of clients.
  size_t answer_bytes = size_t{256} << 20, answer_bytes_per_address = size_t{128} << 20;
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 64 << 10;
  // Bodies that are longer, as BodyLimit allows: the memory of all of them together and of those of one client while
  // they are read and answered (more are answered 503), and the speed at which one must come at least, after `timeout`.
  uint64_t long_bodies_bytes = uint64_t{256} << 20, long_bodies_bytes_per_client = uint64_t{64} << 20;
  uint64_t long_body_bytes_per_second = 256 << 10;
  absl::Duration timeout = absl::Seconds(30);  // for a handshake, for a whole request, and for sending an answer
  // Bytes of chunks that wait for a slow client of a stream; with more, its stream ends. It is twice
  // EventRing::kBytesMax, which a client that comes back may get at once. All streams share the memory of the chunks.
  size_t stream_backlog = size_t{64} << 20;
};

// The key under which the connections of an address are counted: an IPv4 address, or the /64 network of an IPv6
// address, because one machine may use all of that network.
std::string AddressKey(const std::string& address);

class HttpServer {
 public:
  // Called by several threads at a time.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Returns a text that identifies the client, equal for all its requests; "" for an unknown client. Called by one
  // thread.
  using ClientKey = std::function<std::string(const HttpRequest&)>;

  // Returns how many bytes the body of a request may have that has this head, or why it may not come at all. Called by
  // one thread, for bodies longer than HttpLimits::body_bytes, which must come with their Content-Length: it must be
  // quick.
  using BodyLimit = std::function<absl::StatusOr<uint64_t>(const HttpRequest& head)>;

  struct Options {
    std::string listen;  // HOST:PORT; port 0 takes a free one
    TlsFiles tls;        // empty: plain HTTP; else the files are read again for each new connection
    HttpLimits limits;
    ClientKey client_key = nullptr;  // null: clients are identified by their address
    BodyLimit body_limit = nullptr;  // null: no body may be longer than HttpLimits::body_bytes
  };

  // kInvalidArgument: `listen` is no address of this machine, or the certificates cannot be read. kUnavailable: the
  // port is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);
  ~HttpServer();  // as Stop

  // Options::listen with the actual port.
  const std::string& address() const { return address_; }
  int port() const { return port_; }
  int connections() const;  // open ones

  // Ends all connections and returns when no handler runs. Requests that wait for a handler get no answer.
  void Stop();

  class Core;  // the part that uses Beast's types, in server.cc

 private:
  HttpServer(std::unique_ptr<Core> core, std::string address, int port);

  const std::unique_ptr<Core> core_;
  const std::string address_;
  const int port_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_SERVER_H_
