// SPDX-License-Identifier: Apache-2.0
// The tracker's HTTP server: connections, TLS, limits and times, on one thread of its own. What is asked it does not
// know: a handler answers, on a few other threads, so that a question that waits for a disk holds up no connection.
//
// HTTP/1.1 on Boost.Beast (docs/decisions/0152). Every answer carries the headers that keep a browser from running,
// framing or passing on what is not ours. Whoever is too slow, sends too much or connects too often is cut off. Over
// TLS a client may show a certificate of the farm; one that is not good ends the handshake. Start at Start.
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
  int connections_of_address = 1000;  // so that one machine cannot take all (CountedAs)
  int questions = 64;                 // at a time, waiting ones among them; more are answered 503
  int questions_of_one = 2;           // that are answered at a time: who asks much leaves handlers to others
  int waiting_of_one = 16;            // that wait behind those; more are answered 503
  // Of answers that were made and are not taken yet, and of those to one address; while there are more, questions are
  // answered 503. Each is at most some MiB, so that this is hundreds of readers.
  size_t answer_bytes = size_t{256} << 20, answer_bytes_of_address = size_t{128} << 20;
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 64 << 10;
  absl::Duration patience = absl::Seconds(30);  // for a handshake, for a whole request, for taking an answer
  // Bytes of pieces that wait for a slow reader; at more his stream ends. Twice what the newest events may have that
  // somebody missed (EventRing); pieces are the same in all streams.
  size_t stream_backlog = size_t{64} << 20;
};

// What the connections of an address are counted under: itself, or of IPv6 its network of 64 bits, since one machine
// may have all of that.
std::string CountedAs(const std::string& address);

class HttpServer {
 public:
  // Called by several threads at a time.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // What somebody shows to be known by, the same in all that he asks; "" of nobody known. Called by one thread.
  using Proof = std::function<std::string(const HttpRequest&)>;

  struct Options {
    std::string listen;  // HOST:PORT; port 0 takes a free one
    TlsFiles tls;        // none: plain HTTP; else read again for each new connection
    HttpLimits limits;
    Proof proof = nullptr;  // null: nobody is known
  };

  // kInvalidArgument: no such address, or unreadable certificates; kUnavailable: the port is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);
  ~HttpServer();  // as Stop

  // HOST:PORT, as it was given, with the port that it has.
  const std::string& address() const { return address_; }
  int port() const { return port_; }
  int connections() const;  // open ones

  // Ends all connections, and returns when no handler runs any more; what waits for one is not answered.
  void Stop();

  class Core;  // what Beast's types are needed for

 private:
  HttpServer(std::unique_ptr<Core> core, std::string address, int port);

  const std::unique_ptr<Core> core_;
  const std::string address_;
  const int port_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_SERVER_H_
