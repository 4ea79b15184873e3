// SPDX-License-Identifier: Apache-2.0
#include "pki/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "pki/certificate_cache.h"
#include "pki/token.h"

namespace hone::pki {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const Validity kDay = {kNow, kNow + absl::Hours(24)};

TEST(Certificates, AnAuthorityIgnoresNamesInTheRequest) {
  const Authority authority = Authority::Make(kDay).value();
  const std::string request = MakeRequest(MakeKey()).value();
  const std::string pem = authority.SignMember(request, {Role::kAgent, "board"}, kDay).value();
  const CertificateFacts facts = ReadCertificate(pem).value();
  EXPECT_THAT(facts.uris, ElementsAre("hone://farm/agent/board"));
  EXPECT_EQ(facts.from, kDay.from);
  EXPECT_EQ(facts.until, kDay.until);
  EXPECT_TRUE(CertificateHosts(pem)->empty()) << "who had a host name could pose as the tracker";
  const CertificateFacts second =
      ReadCertificate(authority.SignMember(request, {Role::kAgent, "board"}, kDay).value()).value();
  EXPECT_NE(second.serial, facts.serial);
  EXPECT_NE(second.fingerprint, facts.fingerprint);
}

TEST(Certificates, ATrackersCertificateHasItsHosts) {
  const Authority authority = Authority::Make(kDay).value();
  const std::string request = MakeRequest(MakeKey()).value();
  const std::string pem = authority.SignTracker(request, {"tracker.lab", "10.0.0.5", "::1"}, kDay).value();
  EXPECT_THAT(*CertificateHosts(pem), ElementsAre("tracker.lab", "10.0.0.5", "::1"));
  EXPECT_TRUE(ReadCertificate(pem)->uris.empty());
  for (const char* host : {"", "a b", "a,URI:hone://farm/admin/x", "-a", "a/b", "a:1"}) {
    EXPECT_FALSE(authority.SignTracker(request, {host}, kDay).ok()) << host;
  }
}

TEST(Certificates, AcceptsSignatureOfAnyKnownAuthority) {
  const Authority own = Authority::Make(kDay).value(), next = Authority::Make(kDay).value();
  const std::string request = MakeRequest(MakeKey()).value();
  const std::string pem = next.SignMember(request, {Role::kAgent, "board"}, kDay).value();
  EXPECT_TRUE(IsSignedBy(pem, next.certificate()));
  EXPECT_TRUE(IsSignedBy(pem, own.certificate() + next.certificate()));
  EXPECT_FALSE(IsSignedBy(pem, own.certificate())) << "though its issuer has the same name";
  EXPECT_FALSE(IsSignedBy(pem, ""));
  EXPECT_FALSE(IsSignedBy("", next.certificate()));
}

TEST(Certificates, RenewalIsDueAfterTwoThirdsOfTheLifetime) {
  const std::string pem = Authority::Make({kNow, kNow + absl::Hours(30)})->certificate();
  EXPECT_EQ(RenewalTime(ReadCertificate(pem).value()), kNow + absl::Hours(20));
}

TEST(Certificates, ACertificateOfTheFutureMeansAClockThatIsBehind) {
  const CertificateFacts facts = ReadCertificate(Authority::Make(kDay)->certificate()).value();
  EXPECT_EQ(ClockBehindWarning(facts, kDay.from), "");
  EXPECT_THAT(ClockBehindWarning(facts, kDay.from - absl::Seconds(1)), HasSubstr("clock is behind"));
}

// As a stranger may show it, whom nobody has checked yet.
TEST(Certificates, ACertificateWithoutATimeIsRefused) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----\n", kEnd = "-----END CERTIFICATE-----\n";
  const std::string pem = Authority::Make(kDay)->certificate();
  std::string bytes, spoiled(kBegin);
  ASSERT_TRUE(absl::Base64Unescape(pem.substr(kBegin.size(), pem.size() - kBegin.size() - kEnd.size()), &bytes));
  const size_t time = bytes.find("270115080000Z");  // from when on it is good
  ASSERT_NE(time, std::string::npos);
  bytes[time] = 'x';
  const std::string text = absl::Base64Escape(bytes);
  for (size_t i = 0; i < text.size(); i += 64) spoiled += text.substr(i, 64) + "\n";
  const absl::Status status = ReadCertificate(spoiled + std::string(kEnd)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("time cannot be read"));
}

TEST(CertificateCache, LimitsEntriesAndKeepsNoErrors) {
  const Authority authority = Authority::Make(kDay).value();
  const std::string request = MakeRequest(MakeKey()).value();
  CertificateCache certificates(2);
  const auto expect_facts = [&](const std::string& pem) {
    const CertificateFacts facts = ReadCertificate(pem).value(), read = certificates.Read(pem).value();
    EXPECT_EQ(read.serial, facts.serial);
    EXPECT_EQ(read.uris, facts.uris);
    EXPECT_EQ(read.from, facts.from);
    EXPECT_EQ(read.until, facts.until);
    EXPECT_EQ(read.fingerprint, facts.fingerprint);
  };
  std::vector<std::string> pems;
  for (const char* name : {"a", "b", "c"}) {
    pems.push_back(authority.SignMember(request, {Role::kAgent, name}, kDay).value());
  }
  for (const size_t i : {0, 0, 1, 0}) expect_facts(pems[i]);
  EXPECT_EQ(certificates.size(), 2u);
  EXPECT_FALSE(certificates.Read("no certificate").ok());
  EXPECT_EQ(certificates.size(), 2u);
  expect_facts(pems[2]);
  EXPECT_EQ(certificates.size(), 1u);
  for (const size_t i : {0, 2}) expect_facts(pems[i]);
}

TEST(Certificates, InvalidRequestsAreNotSigned) {
  const Authority authority = Authority::Make(kDay).value();
  const FarmIdentity board{Role::kAgent, "board"};
  EXPECT_THAT(std::string(authority.SignMember("", board, kDay).status().message()),
              HasSubstr("not a certificate request"));
  EXPECT_FALSE(authority.SignMember(MakeKey(), board, kDay).ok());
  std::string request = MakeRequest(MakeKey()).value();
  const size_t middle = request.size() - 80;  // in the signature
  request[middle] = request[middle] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(authority.SignMember(request, board, kDay).ok());
}

TEST(Certificates, AnAuthorityIsReadWithItsOwnKeyOnly) {
  const Authority authority = Authority::Make(kDay).value();
  EXPECT_TRUE(Authority::Read(authority.certificate(), authority.key()).ok());
  EXPECT_FALSE(Authority::Read(authority.certificate(), MakeKey()).ok());
  EXPECT_FALSE(Authority::Read(authority.certificate(), "").ok());
  EXPECT_FALSE(Authority::Read("", authority.key()).ok());
}

TEST(Token, WhatIsPrintedIsRead) {
  const Token token{Role::kTuner, RandomSecret(), ReadCertificate(Authority::Make(kDay)->certificate())->fingerprint};
  const Token read = ParseToken(Print(token)).value();
  EXPECT_EQ(read.role, Role::kTuner);
  EXPECT_EQ(read.secret, token.secret);
  EXPECT_EQ(read.fingerprint, token.fingerprint);
  EXPECT_NE(RandomSecret(), RandomSecret());
}

TEST(Token, AnIncompleteTokenIsRefused) {
  const std::string secret = RandomSecret();
  for (const std::string& text : {std::string(), secret, "agent." + secret, "agent." + secret + "." + secret.substr(1),
                                  "king." + secret + "." + secret, "agent." + secret + "." + secret + "."}) {
    EXPECT_THAT(std::string(ParseToken(text).status().message()), HasSubstr("the token is incomplete")) << text;
  }
}

}  // namespace
}  // namespace hone::pki
