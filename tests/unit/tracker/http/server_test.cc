// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"
#include "tests/unit/tracker/http/http_client.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Answers with the parts of the request.
HttpResponse Echo(const HttpRequest& request) {
  return {.type = "text/plain",
          .body = request.method + " " + request.target + " [" + std::string(request.Header("x-test")) + "] " +
                  request.body + (request.certificate_pem.empty() ? "" : " with a certificate")};
}

std::unique_ptr<HttpServer> Serve(HttpServer::Handler handler = Echo, const HttpLimits& limits = {}) {
  return HttpServer::Start({.listen = "127.0.0.1:0", .tls = {}, .limits = limits}, std::move(handler)).value();
}

TEST(HttpServer, AnswersOneRequestAfterTheOtherOnAConnection) {
  const auto server = Serve();
  EXPECT_THAT(server->address(), StartsWith("127.0.0.1:"));
  HttpClient client(server->port());
  HttpReply reply = client.Ask("GET", "/a?b=c", "X-Test: 1\r\nx-test: 2\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /a?b=c [1, 2] ");
  reply = client.Ask("POST", "/x", "", "content");
  EXPECT_EQ(reply.body, "POST /x [] content");
  EXPECT_EQ(reply.headers["content-type"], "text/plain");
}

TEST(HttpServer, SendsHeadersAgainstForeignScriptsAndFrames) {
  const auto server = Serve();
  HttpReply reply = HttpClient(server->port()).Ask("GET", "/");
  EXPECT_THAT(reply.headers["content-security-policy"], HasSubstr("default-src 'none'; script-src 'self';"));
  EXPECT_THAT(reply.headers["content-security-policy"], HasSubstr("frame-ancestors 'none'"));
  EXPECT_EQ(reply.headers["x-content-type-options"], "nosniff");
  EXPECT_EQ(reply.headers["x-frame-options"], "DENY");
  EXPECT_EQ(reply.headers["referrer-policy"], "no-referrer");
  EXPECT_EQ(reply.headers["cache-control"], "no-store");
}

TEST(HttpServer, ToHeadAnswersWithoutABody) {
  const auto server = Serve();
  HttpClient client(server->port());
  client.Send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  HttpReply reply = client.ReceiveHead();
  EXPECT_EQ(reply.headers["content-length"], "10");
  EXPECT_EQ(client.Ask("GET", "/next").body, "GET /next [] ");
}

TEST(HttpServer, ANotModifiedAnswerHasNoLength) {
  const auto server = Serve([](const HttpRequest& request) {
    return request.target == "/had" ? HttpResponse{.status = 304} : Echo(request);
  });
  HttpClient client(server->port());
  for (const char* method : {"GET", "HEAD"}) {
    client.Send(std::string(method) + " /had HTTP/1.1\r\nHost: a\r\n\r\n");
    HttpReply reply = client.ReceiveHead();
    EXPECT_EQ(reply.status, 304);
    EXPECT_FALSE(reply.headers.contains("content-length")) << method;
  }
  EXPECT_EQ(client.Ask("GET", "/next").body, "GET /next [] ") << "the connection goes on";
}

TEST(HttpServer, AnswersExpectContinue) {
  const auto server = Serve(Echo, {.body_bytes = 100});
  const std::string expects = "Host: a\r\nExpect: 100-Continue\r\nContent-Length: ";
  HttpClient client(server->port());
  for (const char* body : {"one", "two"}) {
    client.Send("POST / HTTP/1.1\r\n" + expects + "3\r\n\r\n");
    EXPECT_EQ(client.ReceiveHead().status, 100);
    client.Send(body);
    EXPECT_EQ(client.ReceiveReply().body, std::string("POST / [] ") + body);
  }
  client.Send("POST / HTTP/1.1\r\n" + expects + "101\r\n\r\n");
  EXPECT_EQ(client.ReceiveReply().status, 413);
}

TEST(HttpServer, TakesALongBodyOnlyWhereItIsAllowed) {
  const HttpLimits limits = {.body_bytes = 100, .long_bodies_bytes = 5000};
  const auto server = HttpServer::Start({.listen = "127.0.0.1:0",
                                         .tls = {},
                                         .limits = limits,
                                         .body_limit = [](const HttpRequest& head) -> absl::StatusOr<uint64_t> {
                                           EXPECT_TRUE(head.body.empty());
                                           if (head.target == "/long") return 3000;
                                           if (head.target == "/door") return absl::UnauthenticatedError("who?");
                                           return 0;
                                         }},
                                        Echo)
                          .value();
  HttpClient client(server->port());
  const std::string body(3000, 'x');
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Ask("PUT", "/long", "", body).body, "PUT /long [] " + body);
  EXPECT_EQ(client.Ask("PUT", "/long", "", body + "x").status, 413);
  EXPECT_EQ(HttpClient(server->port()).Ask("PUT", "/short", "", body).status, 413);
  const HttpReply unknown = HttpClient(server->port()).Ask("PUT", "/door", "", body);
  EXPECT_EQ(unknown.status, 401);
  EXPECT_THAT(unknown.body, HasSubstr("who?"));
  HttpClient chunked(server->port());
  chunked.Send("PUT /long HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nc8\r\n" + std::string(200, 'x') +
               "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.ReceiveReply().status, 413) << "a long body must say its length";
}

TEST(HttpServer, LongBodiesTogetherHaveALimit) {
  const HttpLimits limits = {.body_bytes = 100, .long_bodies_bytes = 5000};
  const auto server =
      HttpServer::Start({.listen = "127.0.0.1:0",
                         .tls = {},
                         .limits = limits,
                         .body_limit = [](const HttpRequest&) { return absl::StatusOr<uint64_t>(3000); }},
                        Echo)
          .value();
  HttpClient slow(server->port());
  slow.Send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n");
  ASSERT_EQ(slow.ReceiveHead().status, 100);
  EXPECT_EQ(HttpClient(server->port()).Ask("PUT", "/", "", std::string(3000, 'x')).status, 503);
  EXPECT_EQ(HttpClient(server->port()).Ask("PUT", "/", "", std::string(2000, 'x')).status, 200) << "which fits";
  slow.Send(std::string(3000, 'x'));
  EXPECT_EQ(slow.ReceiveReply().status, 200);
  EXPECT_EQ(HttpClient(server->port()).Ask("PUT", "/", "", std::string(3000, 'x')).status, 200) << "freed again";
}

TEST(HttpServer, LongBodiesOfOneClientHaveALimit) {
  const HttpLimits limits = {.body_bytes = 100, .long_bodies_bytes = 10000, .long_bodies_bytes_per_client = 5000};
  const auto server =
      HttpServer::Start({.listen = "127.0.0.1:0",
                         .tls = {},
                         .limits = limits,
                         .client_key = [](const HttpRequest& head) { return std::string(head.Header("x-client")); },
                         .body_limit = [](const HttpRequest&) { return absl::StatusOr<uint64_t>(3000); }},
                        Echo)
          .value();
  const auto status_of = [&](const std::string& client) {
    return HttpClient(server->port()).Ask("PUT", "/", "X-Client: " + client + "\r\n", std::string(3000, 'x')).status;
  };
  HttpClient slow(server->port());
  slow.Send("PUT / HTTP/1.1\r\nHost: a\r\nX-Client: ann\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n");
  ASSERT_EQ(slow.ReceiveHead().status, 100);
  EXPECT_EQ(status_of("ann"), 503);
  EXPECT_EQ(status_of("bob"), 200);
  slow.Send(std::string(3000, 'x'));
  EXPECT_EQ(slow.ReceiveReply().status, 200);
  EXPECT_EQ(status_of("ann"), 200) << "freed again";
}

TEST(HttpServer, ARefusalArrivesAfterTheWholeBodyWasSent) {
  const auto server = Serve();
  EXPECT_EQ(HttpClient(server->port()).Ask("PUT", "/", "", std::string(20 << 20, 'x')).status, 413);
}

TEST(HttpServer, SendsNoContinueWithoutExpect) {
  const auto server = Serve();
  const std::string expects = "Host: a\r\nExpect: 100-continue\r\n";
  HttpClient client(server->port());
  client.Send("GET / HTTP/1.1\r\n" + expects + "\r\n");
  EXPECT_EQ(client.ReceiveReply().status, 200);
  client.Send("POST / HTTP/1.1\r\n" + expects + "Content-Length: 3\r\n\r\none");
  EXPECT_EQ(client.ReceiveReply().status, 200);
  client.Send("POST / HTTP/1.0\r\n" + expects + "Content-Length: 3\r\n\r\n");
  client.Send("one");
  EXPECT_EQ(client.ReceiveReply().status, 200);
}

TEST(HttpServer, RefusesWhatIsTooLongOrNoRequest) {
  const auto server = Serve(Echo, {.header_bytes = 1000, .body_bytes = 100});
  EXPECT_EQ(HttpClient(server->port()).Ask("GET", "/" + std::string(2000, 'a')).status, 431);
  EXPECT_EQ(HttpClient(server->port()).Ask("GET", "/", "X: " + std::string(2000, 'a') + "\r\n").status, 431);
  EXPECT_EQ(HttpClient(server->port()).Ask("POST", "/", "", std::string(101, 'a')).status, 413);
  EXPECT_EQ(HttpClient(server->port()).Ask("POST", "/", "", std::string(100, 'a')).status, 200);
  HttpClient client(server->port());
  client.Send("\x16\x03\x01 what a TLS client says first\r\n\r\n");
  EXPECT_EQ(client.ReceiveReply().status, 400);
  EXPECT_EQ(client.Receive(), "");
  HttpClient chunked(server->port());
  chunked.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + std::string(4095, 'a') +
               "\r\n");
  EXPECT_EQ(chunked.ReceiveReply().status, 413);
}

TEST(HttpServer, CutsOffSlowClients) {
  const auto server = Serve(Echo, {.timeout = absl::Milliseconds(100)});
  HttpClient silent(server->port()), slow(server->port());
  slow.Send("GET / HTTP/1.1\r\nHost:");
  EXPECT_EQ(silent.Receive(), "");
  EXPECT_EQ(slow.ReceiveHead().status, 0);
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
}

TEST(HttpServer, LimitsConnections) {
  const auto server = Serve(Echo, {.connections_per_address_max = 2});
  HttpClient first(server->port());
  {
    HttpClient second(server->port()), third(server->port());
    EXPECT_EQ(first.Ask("GET", "/").status, 200);
    EXPECT_EQ(second.Ask("GET", "/").status, 200);
    EXPECT_EQ(third.Ask("GET", "/").status, 0);
  }
  EXPECT_TRUE(Eventually([&] { return HttpClient(server->port()).Ask("GET", "/").status == 200; }));
}

// A request beyond the limit is answered with 503 at once. The requests in progress are still answered.
TEST(HttpServer, WaitingRequestsDelayNoOtherConnection) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> waiting = 0;
  const auto server = Serve(
      [&](const HttpRequest&) {
        ++waiting;
        gone.wait();
        return HttpResponse{.body = "late"};
      },
      {.requests = 2});
  HttpClient first(server->port()), second(server->port()), third(server->port());
  first.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  second.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return waiting == 2; }));
  EXPECT_EQ(third.Ask("GET", "/").status, 503);
  go.set_value();
  EXPECT_EQ(first.ReceiveReply().body, "late");
  EXPECT_EQ(second.ReceiveReply().body, "late");
}

// A handler that blocks until the test lets it continue.
struct Held {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> arrived = 0, begun = 0;

  std::unique_ptr<HttpServer> Serve() {
    const HttpServer::Options options{
        .listen = "127.0.0.1:0", .tls = {}, .limits = {}, .client_key = [this](const HttpRequest& request) {
          ++arrived;
          return std::string(request.Header("x-test"));
        }};
    return HttpServer::Start(options,
                             [this](const HttpRequest& request) {
                               if (request.target != "/slow") return HttpResponse{.body = "quick"};
                               ++begun;
                               gone.wait();
                               return HttpResponse{.body = "slow"};
                             })
        .value();
  }
};

TEST(HttpServer, LimitsHandlersPerClient) {
  Held held;
  const auto server = held.Serve();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server->port()));
    clients.back()->Send("GET /slow HTTP/1.1\r\nHost: a\r\nX-Test: ann\r\n\r\n");
  }
  ASSERT_TRUE(Eventually([&] { return held.arrived == 5 && held.begun >= 2; }));
  EXPECT_EQ(HttpClient(server->port()).Ask("GET", "/", "X-Test: bob\r\n").body, "quick");
  EXPECT_EQ(HttpClient(server->port()).Ask("GET", "/").body, "quick");
  EXPECT_EQ(held.begun, 2);
  held.go.set_value();
  for (const auto& client : clients) EXPECT_EQ(client->ReceiveReply().body, "slow") << "each has its turn";
}

TEST(HttpServer, StopDropsWaitingRequests) {
  Held held;
  auto server = held.Serve();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server->port()));
    clients.back()->Send("GET /slow HTTP/1.1\r\nHost: a\r\nX-Test: " + std::to_string(i / 2) + "\r\n\r\n");
  }
  ASSERT_TRUE(Eventually([&] { return held.arrived == 8 && held.begun == 4; }));
  std::thread stops([&] { server->Stop(); });
  for (const auto& client : clients) EXPECT_EQ(client->Receive(), "");
  held.go.set_value();
  stops.join();
  EXPECT_EQ(held.begun, 4);
}

TEST(HttpServer, LimitsMemoryOfUnreadAnswers) {
  const std::string large(64 << 20, 'x');  // more than socket buffers hold
  const absl::Duration timeout = absl::Hours(1);
  for (const HttpLimits& limits : {HttpLimits{.answer_bytes = 1 << 20, .timeout = timeout},
                                   HttpLimits{.answer_bytes_per_address = 1 << 20, .timeout = timeout}}) {
    const auto server = Serve(
        [&](const HttpRequest& request) { return HttpResponse{.body = request.target == "/large" ? large : "small"}; },
        limits);
    HttpClient idle(server->port());
    idle.Send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(Eventually([&] { return HttpClient(server->port()).Ask("GET", "/").status == 503; }));
    EXPECT_EQ(idle.ReceiveReply().body.size(), large.size());
    EXPECT_TRUE(Eventually([&] { return HttpClient(server->port()).Ask("GET", "/").body == "small"; }));
  }
}

TEST(HttpServer, CountsAnAddressOrTheNetworkThatAMachineHasOfIpv6) {
  EXPECT_EQ(AddressKey("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(AddressKey("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(AddressKey("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(AddressKey("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(AddressKey("2001:db8:1:3::9"), "2001:db8:1:3::/64");
}

// The stream of a subscriber, which the test feeds itself.
struct Hand {
  std::mutex mutex;
  std::function<void(Chunk)> send;
  std::atomic<bool> subscribed = false, let_go = false;

  HttpServer::Handler Handler() {
    return [this](const HttpRequest&) {
      HttpResponse response{.type = "text/event-stream"};
      response.stream = [this](std::function<void(Chunk)> to) -> std::shared_ptr<void> {
        const std::lock_guard lock(mutex);
        send = std::move(to);
        subscribed = true;
        return {this, [](Hand* hand) { hand->let_go = true; }};
      };
      return response;
    };
  }
  void Send(const std::string& text) {
    const std::lock_guard lock(mutex);
    send(std::make_shared<const std::string>(text));
  }
};

TEST(HttpServer, AStreamCarriesWhatComesUntilEitherSideEndsIt) {
  Hand hand;
  const auto server = Serve(hand.Handler());
  std::string line;
  {
    HttpClient client(server->port());
    client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.ReceiveHead().headers["content-type"], "text/event-stream");
    ASSERT_TRUE(Eventually([&] { return hand.subscribed.load(); }));
    hand.Send("one\ntwo\n");
    hand.Send("three\n");
    for (const char* expected : {"one", "two", "three"}) {
      ASSERT_TRUE(client.ReceiveLine(line));
      EXPECT_EQ(line, expected);
    }
  }
  EXPECT_TRUE(Eventually([&] { return hand.let_go.load(); }));  // the client disconnected
  hand.Send("to nobody");
  hand.subscribed = hand.let_go = false;
  HttpClient client(server->port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  client.ReceiveHead();
  ASSERT_TRUE(Eventually([&] { return hand.subscribed.load(); }));
  hand.Send("last\n");
  hand.send(nullptr);
  ASSERT_TRUE(client.ReceiveLine(line));
  EXPECT_EQ(line, "last");
  EXPECT_FALSE(client.ReceiveLine(line));
  EXPECT_TRUE(Eventually([&] { return hand.let_go.load(); }));
}

// A subscriber's backlog is sent before the subscriber can have read any of it.
TEST(HttpServer, AStreamMayBeginWithAnyNumberOfSmallPieces) {
  constexpr int kPieces = 300;
  const auto server = Serve([](const HttpRequest&) {
    HttpResponse response{.type = "text/event-stream"};
    response.stream = [](const std::function<void(Chunk)>& send) -> std::shared_ptr<void> {
      for (int i = 0; i < kPieces; ++i) send(std::make_shared<const std::string>(std::to_string(i) + "\n"));
      return nullptr;
    };
    return response;
  });
  HttpClient client(server->port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.ReceiveHead().status, 200);
  std::string line;
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_TRUE(client.ReceiveLine(line)) << i;
    EXPECT_EQ(line, std::to_string(i));
  }
}

TEST(HttpServer, ToHeadAnswersWithoutAStream) {
  Hand hand;
  const auto server = Serve(hand.Handler());
  HttpClient client(server->port());
  for (int i = 0; i < 2; ++i) {  // the connection stays open
    client.Send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    HttpReply reply = client.ReceiveHead();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.headers["content-type"], "text/event-stream");
    EXPECT_FALSE(reply.headers.contains("content-length"));
  }
  EXPECT_FALSE(hand.subscribed);
}

// A client that does not read must not fill the server's memory.
TEST(HttpServer, AStreamEndsIfItsClientDoesNotRead) {
  Hand hand;
  const auto server = Serve(hand.Handler(), {.stream_backlog = 4 << 20});
  HttpClient client(server->port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return hand.subscribed.load(); }));
  for (int i = 0; i < 100; ++i) hand.Send(std::string(1 << 20, 'x'));
  EXPECT_TRUE(Eventually([&] { return hand.let_go.load(); }));
}

TEST(HttpServer, EndsWithConnectionsOpen) {
  Hand hand;
  auto server = Serve(hand.Handler());
  HttpClient idle(server->port()), stream(server->port());
  stream.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return hand.subscribed.load(); }));
  server.reset();
  EXPECT_EQ(idle.Receive(), "");
  EXPECT_TRUE(hand.let_go);  // nothing may be sent from here on
}

TEST(HttpServer, SaysWhereItCannotListen) {
  const auto server = Serve();
  const auto start = [](const std::string& listen) {
    return HttpServer::Start({.listen = listen, .tls = {}, .limits = {}}, Echo).status();
  };
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", ":80", "127.0.0.1:99999", "no such host:80"}) {
    EXPECT_EQ(start(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(start("192.0.2.1:80").code(), absl::StatusCode::kUnavailable);
}

class HttpServerTls : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, absl::Now()).ok());
    const auto authority = pki::ReadAuthority(folder_ / "pki").value();
    ASSERT_TRUE(
        pki::IssueIdentity(*authority, folder_ / "ann", {Role::kViewer, "ann"}, "localhost:1", absl::Now()).ok());
    server_ =
        HttpServer::Start({.listen = "127.0.0.1:0", .tls = pki::FilesIn(folder_ / "pki"), .limits = {}}, Echo).value();
  }
  TlsFiles Nobody() const { return {.identity = "", .authority = pki::FilesIn(folder_ / "pki").authority}; }
  // An identity of another authority, in the folder "other". Its holder has a copy of the first authority, so it trusts
  // the server.
  TlsFiles OfAnotherAuthority() const {
    EXPECT_TRUE(pki::MakeTrackerFolder(folder_ / "other", {"localhost"}, absl::Now()).ok());
    const auto other = pki::ReadAuthority(folder_ / "other").value();
    EXPECT_TRUE(pki::IssueIdentity(*other, folder_ / "eve", {Role::kAdmin, "eve"}, "localhost:1", absl::Now()).ok());
    return {.identity = pki::FilesIn(folder_ / "eve").identity, .authority = pki::FilesIn(folder_ / "ann").authority};
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTls, ACertificateMayBeShown) {
  EXPECT_EQ(HttpClient(server_->port(), Nobody()).Ask("GET", "/").body, "GET / [] ");
  HttpClient ann(server_->port(), pki::FilesIn(folder_ / "ann"));
  EXPECT_EQ(ann.Ask("GET", "/").body, "GET / []  with a certificate");
  EXPECT_EQ(ann.Ask("GET", "/2").body, "GET /2 []  with a certificate");
  EXPECT_EQ(HttpClient(server_->port()).Ask("GET", "/").status, 0);  // plain HTTP
}

TEST_F(HttpServerTls, ARefusalArrivesAfterTheWholeBodyWasSent) {
  EXPECT_EQ(HttpClient(server_->port(), Nobody()).Ask("PUT", "/", "", std::string(20 << 20, 'x')).status, 413);
}

TEST_F(HttpServerTls, ACertificateOfAnotherAuthorityEndsTheHandshake) {
  EXPECT_EQ(HttpClient(server_->port(), OfAnotherAuthority()).Ask("GET", "/").status, 0);
}

TEST_F(HttpServerTls, AReplacedAuthorityHoldsForTheNextConnection) {
  const TlsFiles eve = OfAnotherAuthority();
  const TlsFiles ann = pki::FilesIn(folder_ / "ann");
  HttpClient open(server_->port(), ann);
  EXPECT_EQ(open.Ask("GET", "/").status, 200);
  const std::string authority = pki::FilesIn(folder_ / "pki").authority;
  const std::string first = pki::ReadFile(authority).value();
  const std::string other = pki::ReadFile(pki::FilesIn(folder_ / "other").authority).value();
  ASSERT_TRUE(pki::WriteFile(authority, first + other).ok());
  EXPECT_EQ(HttpClient(server_->port(), eve).Ask("GET", "/").status, 200);
  EXPECT_EQ(HttpClient(server_->port(), ann).Ask("GET", "/").status, 200);
  ASSERT_TRUE(pki::WriteFile(authority, other).ok());
  EXPECT_EQ(HttpClient(server_->port(), eve).Ask("GET", "/").status, 200);
  EXPECT_EQ(HttpClient(server_->port(), ann).Ask("GET", "/").status, 0);
  EXPECT_EQ(open.Ask("GET", "/").status, 200) << "what is open goes on";
  ASSERT_TRUE(pki::WriteFile(authority, "nothing that could be read").ok());
  EXPECT_EQ(HttpClient(server_->port(), eve).Ask("GET", "/").status, 200) << "the one before";
}

}  // namespace
}  // namespace hone::tracker
