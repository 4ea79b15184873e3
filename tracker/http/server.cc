// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/server.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <charconv>
#include <deque>
#include <iterator>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "pki/identity_folder.h"
#include "tracker/http/client_memory.h"
#include "tracker/http/connection.h"

namespace hone::tracker {

// The contents of the certificate files, and the TLS context made of them.
struct HttpTls {
  std::string identity, authority;  // PEM
  std::shared_ptr<boost::asio::ssl::context> context;
};

namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;
using asio::ip::tcp;

constexpr int kHandlers = 4;
constexpr size_t kNetworkBytes = 8;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

// Reads the files; returns `before` if they did not change. TLS sessions are not resumed, so that every handshake
// checks the client's certificate.
absl::StatusOr<HttpTls> ReadTls(const TlsFiles& files, const HttpTls& before) {
  HONE_ASSIGN_OR_RETURN(std::string identity, pki::ReadFile(files.identity));
  HONE_ASSIGN_OR_RETURN(std::string authority, pki::ReadFile(files.authority));
  if (identity == before.identity && authority == before.authority) return before;
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  Error error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1 | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION,
                       error);
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context->native_handle(), 0);
  if (!error) context->use_certificate_chain(asio::buffer(identity), error);
  if (!error) context->use_private_key(asio::buffer(identity), asio::ssl::context::pem, error);
  if (!error) context->add_certificate_authority(asio::buffer(authority), error);
  if (!error) context->set_verify_mode(asio::ssl::verify_peer, error);  // a client certificate is optional
  if (!error) return HttpTls{std::move(identity), std::move(authority), std::move(context)};
  return absl::InvalidArgumentError(
      fmt::format("cannot use {} and {}: {}", files.identity, files.authority, error.message()));
}

absl::StatusOr<tcp::endpoint> Resolve(asio::io_context& io, const std::string& listen) {
  const size_t colon = listen.rfind(':');
  uint16_t port = 0;
  const char* end = listen.data() + listen.size();
  const bool number = colon != std::string::npos && colon + 1 < listen.size();
  const auto read = number ? std::from_chars(listen.data() + colon + 1, end, port) : std::from_chars_result{};
  const bool good = number && read.ptr == end && read.ec == std::errc();
  std::string host = listen.substr(0, std::min(colon, listen.size()));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (!good || host.empty()) {
    return absl::InvalidArgumentError(fmt::format("cannot serve HTTP on '{}': write HOST:PORT", listen));
  }
  Error error;
  const auto found = tcp::resolver(io).resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (!error && !found.empty()) return found.begin()->endpoint();
  return absl::InvalidArgumentError(fmt::format("'{}' is not an address of this machine: {}", host, error.message()));
}

}  // namespace

std::string AddressKey(const std::string& address) {
  Error error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error || !parsed.is_v6()) return address;
  if (parsed.to_v6().is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, parsed.to_v6()).to_string();
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

class HttpServer::Core {
 public:
  Core(Options options, Handler handler, HttpTls tls)
      : options_(std::move(options)), handler_(std::move(handler)), tls_(std::move(tls)), handlers_(kHandlers) {}

  absl::StatusOr<int> Listen() {
    HONE_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, Resolve(io_, options_.listen));
    Error error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::UnavailableError(fmt::format("cannot serve HTTP on {}: {}", options_.listen, error.message()));
    }
    const int port = acceptor_.local_endpoint(error).port();
    Accept();
    thread_ = std::thread([this] { io_.run(); });
    return port;
  }

  void Stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    asio::post(io_, [this] {
      Error ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      for (const auto& [key, close] : std::map(close_)) close();
      askers_.clear();
    });
    handlers_.join();
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
  }

  int connections() const { return connections_; }

 private:
  struct Waits {
    std::string address;
    HttpRequest request;
    ConnectionHost::Done done;
  };
  struct Asker {
    int answered = 0;  // requests in work
    std::deque<Waits> waiting;
  };

  void Accept() {
    acceptor_.async_accept([this](Error error, tcp::socket socket) {
      if (stopping_) return;
      if (!error) Welcome(std::move(socket));
      if (!error) return Accept();
      pause_.expires_after(kAcceptPause);  // no file descriptor is free; accept again later
      pause_.async_wait([this](Error cancelled) {
        if (!cancelled && !stopping_) Accept();
      });
    });
  }

  void Welcome(tcp::socket socket) {
    Error error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;
    const std::string address = peer.address().to_string(), counted = AddressKey(address);
    const auto known = of_address_.find(counted);
    const int open = known == of_address_.end() ? 0 : known->second;
    if (connections_ >= options_.limits.connections || open >= options_.limits.connections_per_address_max) return;
    socket.set_option(tcp::no_delay(true), error);
    ++of_address_[counted];
    ++connections_;
    const std::string text = fmt::format("{}:{}", peer.address().is_v6() ? "[" + address + "]" : address, peer.port());
    const ConnectionHost host = {
        .limits = options_.limits,
        .body_limit = options_.body_limit,
        .reserve =
            [bodies = long_bodies_, counted, key_of = options_.client_key,
             limits =
                 ClientMemory::Limits{options_.limits.long_bodies_bytes, options_.limits.long_bodies_bytes_per_client}](
                const HttpRequest& head, uint64_t bytes) {
              return ClientMemory::Reserve(bodies, WhoAsks(key_of, head, counted), bytes, limits);
            },
        .ask = [this, counted](HttpRequest request, auto done) { Ask(counted, std::move(request), std::move(done)); },
        .closed = [this, counted, key = ++last_key_] { Forget(counted, key); }};
    if (options_.tls.none()) {
      Begin<PlainStream>(PlainStream(std::move(socket)), text, host, nullptr);
    } else {
      RereadTls();
      Begin<TlsStream>(TlsStream(std::move(socket), *tls_.context), text, host, tls_.context);
    }
  }

  template <typename Stream>
  void Begin(Stream stream, const std::string& peer, const ConnectionHost& host,
             const std::shared_ptr<asio::ssl::context>& tls) {
    const auto connection = std::make_shared<Connection<Stream>>(std::move(stream), peer, host, tls);
    close_[last_key_] = [weak = std::weak_ptr(connection)] {
      if (const auto connection = weak.lock()) connection->Close();
    };
    connection->Run();
  }

  // The client's key, or else its address.
  static std::string WhoAsks(const ClientKey& key_of, const HttpRequest& request, const std::string& address) {
    const std::string key = key_of == nullptr ? "" : key_of(request);
    return key.empty() ? address : key;
  }

  // May run on a handler's thread, if the handler held the last pointer to the connection.
  void Forget(const std::string& address, int64_t key) {
    --connections_;
    asio::post(io_, [this, address, key] {
      close_.erase(key);
      if (--of_address_[address] == 0) of_address_.erase(address);
    });
  }

  void Ask(const std::string& address, HttpRequest request, ConnectionHost::Done done) {
    if (stopping_) return;
    const std::string who = WhoAsks(options_.client_key, request, address);
    const auto known = askers_.find(who);
    const bool much = known != askers_.end() && std::ssize(known->second.waiting) >= options_.limits.waiting_per_client;
    if (much || requests_ >= options_.limits.requests) {
      done(ErrorResponse(absl::UnavailableError("too many requests at a time; try again in a moment")), nullptr);
      return;
    }
    ++requests_;
    askers_[who].waiting.push_back({address, std::move(request), std::move(done)});
    BeginNext(who);
  }

  // Gives the client's next request to a handler if its limit allows. Runs on the server's thread, which owns askers_.
  void BeginNext(const std::string& who) {
    const auto asker = askers_.find(who);
    if (stopping_ || asker == askers_.end()) return;
    auto& [answered, waiting] = asker->second;
    if (answered == options_.limits.requests_per_client) return;
    if (waiting.empty()) {
      if (answered == 0) askers_.erase(asker);
      return;
    }
    ++answered;
    asio::post(handlers_, [this, who, waits = std::move(waiting.front())] {
      if (stopping_) return;
      AnswerOne(waits);
      asio::post(io_, [this, who] {
        if (const auto known = askers_.find(who); known != askers_.end()) --known->second.answered;
        BeginNext(who);
      });
    });
    waiting.pop_front();
  }

  void AnswerOne(const Waits& waits) {
    // Checked when the handler starts; requests that passed an earlier check would all be answered together.
    const HttpLimits& limits = options_.limits;
    HttpResponse response = answers_->IsOverLimit(waits.address, {limits.answer_bytes, limits.answer_bytes_per_address})
                                ? ErrorResponse(absl::UnavailableError(
                                      "too many answers wait for clients that read slowly; try again later"))
                                : handler_(waits.request);
    std::shared_ptr<void> delivery = ClientMemory::Count(answers_, waits.address, response.body.size());
    --requests_;
    waits.done(std::move(response), std::move(delivery));
  }

  // Called before each handshake, which costs far more than reading two small files. A removed authority is therefore
  // not trusted by any later connection.
  void RereadTls() {
    absl::StatusOr<HttpTls> tls = ReadTls(options_.tls, tls_);
    const std::string failure = tls.ok() ? "" : tls.status().ToString();
    if (tls.ok()) tls_ = *std::move(tls);
    if (failure == tls_failure_) return;
    tls_failure_ = failure;
    if (!failure.empty()) spdlog::error("HTTPS keeps using the previous certificates: {}", failure);
  }

  const Options options_;
  const Handler handler_;
  HttpTls tls_;
  std::string tls_failure_;  // why the files could not be read the last time, so that it is logged once; "": they could
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0, requests_ = 0;
  int64_t last_key_ = 0;
  std::map<std::string, int> of_address_;
  std::map<std::string, Asker> askers_;  // clients, by their ClientKey or else their address
  std::map<int64_t, std::function<void()>> close_;
  // Shared, because a connection may live longer than the server.
  const std::shared_ptr<ClientMemory> long_bodies_ = std::make_shared<ClientMemory>();  // of requests
  const std::shared_ptr<ClientMemory> answers_ = std::make_shared<ClientMemory>();      // not sent completely
  asio::thread_pool handlers_;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Core> core, std::string address, int port)
    : core_(std::move(core)), address_(std::move(address)), port_(port) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options, Handler handler) {
  HttpTls tls;
  if (!options.tls.none()) {
    HONE_ASSIGN_OR_RETURN(tls, ReadTls(options.tls, tls));
  }
  auto core = std::make_unique<Core>(options, std::move(handler), std::move(tls));
  HONE_ASSIGN_OR_RETURN(const int port, core->Listen());
  std::string address = fmt::format("{}:{}", options.listen.substr(0, options.listen.rfind(':')), port);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core), std::move(address), port));
}

HttpServer::~HttpServer() { Stop(); }

int HttpServer::connections() const { return core_->connections(); }

void HttpServer::Stop() { core_->Stop(); }

}  // namespace hone::tracker
