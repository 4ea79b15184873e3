// SPDX-License-Identifier: Apache-2.0
#include "tracker/register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "base/temporary_folder.h"
#include "pki/token.h"
#include "storage/memory/identity_store.h"
#include "storage/sqlite/connection.h"

namespace hone::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const absl::Time kRegisterTime = absl::FromUnixSeconds(1'800'000'000);

class RegisterTest : public testing::Test {
 protected:
  void Reopen() {
    members_.reset();
    members_ = Register::Open(folder_ / "register.db").value();
  }
  Register::Sign Signer(absl::Time from = kRegisterTime) {
    return [this, from](const FarmIdentity& identity) {
      return authority_.SignMember(pki::MakeRequest(pki::MakeKey()).value(), identity, {from, from + absl::Hours(24)});
    };
  }
  std::string Token(Role role = Role::kAgent, const std::string& name = "", int uses = 1) {
    const std::string secret = pki::RandomSecret();
    last_ =
        members_->AddToken({secret, role, name, uses, kRegisterTime + absl::Hours(1), "ann"}, kRegisterTime).value();
    return secret;
  }
  absl::StatusOr<Register::Enrolled> Enrol(const std::string& secret, const std::string& name = "",
                                           absl::Time now = kRegisterTime) {
    return members_->Enrol({secret, "agent", name, "host"}, Signer(now), now);
  }
  absl::Status Admit(const Register::Enrolled& member, absl::Time now = kRegisterTime) {
    return members_->Admit(member.identity, pki::ReadCertificate(member.certificate).value(), now);
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const pki::Authority authority_ = pki::Authority::Make({kRegisterTime, kRegisterTime + absl::Hours(999)}).value();
  std::unique_ptr<Register> members_ = Register::Open(folder_ / "register.db").value();
  v1::Token last_;
};

// Tests that neither reopen nor read the file also run on a store in memory.
class RegisterOfEachKindTest : public RegisterTest, public testing::WithParamInterface<bool> {
 protected:
  RegisterOfEachKindTest() {
    if (GetParam()) members_ = std::make_unique<Register>(std::make_unique<storage::MemoryIdentityStore>());
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, RegisterOfEachKindTest, testing::Bool(),
                         [](const auto& in_memory) { return in_memory.param ? "Memory" : "Sqlite"; });

TEST_F(RegisterTest, ATokenLetsOneInOnce) {
  const std::string secret = Token();
  EXPECT_TRUE(members_->CheckToken(secret, kRegisterTime).ok());
  const auto member = Enrol(secret, "board");
  ASSERT_TRUE(member.ok()) << member.status();
  EXPECT_EQ(member->identity.name, "board");
  EXPECT_TRUE(Admit(*member).ok());
  Reopen();
  EXPECT_THAT(std::string(Enrol(secret, "other").status().message()), HasSubstr(last_.id() + " was used already"));
  EXPECT_TRUE(absl::IsUnauthenticated(members_->CheckToken(secret, kRegisterTime)));
  EXPECT_EQ(members_->Identities()->size(), 1u);
  EXPECT_EQ((*members_->Identities())[0].vouched_by(), "token " + last_.id() + " of ann");
}

TEST_P(RegisterOfEachKindTest, AnInvalidTokenIsRefused) {
  EXPECT_THAT(std::string(Enrol(pki::RandomSecret()).status().message()),
              HasSubstr("this farm does not know the token"));
  EXPECT_FALSE(Enrol("").ok());
  const std::string secret = Token();
  EXPECT_TRUE(absl::IsUnauthenticated(Enrol(secret.substr(1)).status()));
  EXPECT_THAT(std::string(Enrol(secret, "", kRegisterTime + absl::Hours(1)).status().message()),
              HasSubstr("has expired"));
  EXPECT_TRUE(members_->CheckToken(secret, kRegisterTime + absl::Minutes(59)).ok());
  ASSERT_TRUE(members_->RevokeToken(last_.id()).ok());
  EXPECT_THAT(std::string(Enrol(secret).status().message()), HasSubstr("was revoked"));
  EXPECT_TRUE(absl::IsNotFound(members_->RevokeToken("00000000")));
  EXPECT_TRUE(members_->Identities()->empty());
}

TEST_P(RegisterOfEachKindTest, ARefusedJoinSpendsNoUse) {
  const std::string secret = Token(Role::kAgent, "", 2);
  ASSERT_TRUE(Enrol(secret, "board").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Enrol(secret, "board").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Enrol(secret, "a b").status()));
  EXPECT_TRUE(
      absl::IsPermissionDenied(members_->Enrol({secret, "admin", "x", "host"}, Signer(), kRegisterTime).status()));
  const auto broken = [](const FarmIdentity&) { return absl::StatusOr<std::string>(absl::InternalError("broken")); };
  EXPECT_TRUE(absl::IsInternal(members_->Enrol({secret, "agent", "x", "host"}, broken, kRegisterTime).status()));
  EXPECT_EQ((*members_->Tokens())[0].uses_left(), 1);
  EXPECT_TRUE(Enrol(secret, "other").ok());
}

TEST_P(RegisterOfEachKindTest, ATokenForANameIsForNoOther) {
  const std::string secret = Token(Role::kAgent, "board");
  EXPECT_TRUE(absl::IsPermissionDenied(Enrol(secret, "other").status()));
  EXPECT_EQ(Enrol(secret)->identity.name, "board");
  EXPECT_TRUE(absl::IsAlreadyExists(
      members_
          ->AddToken({pki::RandomSecret(), Role::kAgent, "board", 1, kRegisterTime + absl::Hours(1), "ann"},
                     kRegisterTime)
          .status()));
}

TEST_P(RegisterOfEachKindTest, AMachineWithoutANameGetsThatOfItsHost) {
  EXPECT_EQ(Enrol(Token())->identity.name, "host");
  const std::string second = Enrol(Token())->identity.name;
  EXPECT_THAT(second, testing::StartsWith("host-"));
  EXPECT_EQ(members_->Enrol({Token(), "agent", "", "-\xc3\xa4 my board"}, Signer(), kRegisterTime)->identity.name,
            "myboard");
  EXPECT_EQ(members_->Enrol({Token(), "agent", "", "..."}, Signer(), kRegisterTime)->identity.name, "agent");
}

TEST_F(RegisterTest, ANameIsFoundWhereThatOfTheHostIsTakenManyTimes) {
  members_.reset();
  const auto file = storage::Connection::Open(folder_ / "register.db", SQLITE_OPEN_READWRITE, "").value();
  ASSERT_EQ(file.Execute("WITH RECURSIVE all_suffixes(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM all_suffixes LIMIT "
                         "65536) INSERT INTO certificates SELECT printf('%d', i), 'agent', printf('host-%04x', i), 0, "
                         "0, 'token', 0 FROM all_suffixes"),
            absl::OkStatus());
  Reopen();
  EXPECT_EQ(Enrol(Token())->identity.name, "host");
  EXPECT_THAT(Enrol(Token())->identity.name, testing::MatchesRegex("host-[0-9a-f]{5,12}"));
}

TEST_P(RegisterOfEachKindTest, ASessionsNameIsFreeWhenItsTimeIsOver) {
  const auto begin = [&](absl::Time now) {
    const std::string secret = pki::RandomSecret();
    EXPECT_TRUE(members_->AddToken({secret, Role::kViewer, "", 1, now + absl::Hours(1), "ann"}, now).ok());
    return members_->Enrol({secret, "viewer", "", "web", true}, Signer(now), now)->identity.name;
  };
  EXPECT_EQ(begin(kRegisterTime), "web");
  EXPECT_NE(begin(kRegisterTime), "web");
  EXPECT_THAT((*members_->Identities())[0].vouched_by(), testing::EndsWith(" of ann, for a browser session"));
  ASSERT_TRUE(Enrol(Token(), "board").ok());
  const absl::Time later = kRegisterTime + absl::Hours(25);
  begin(later);
  EXPECT_EQ(members_->Identities()->size(), 2u) << "the new one, and the board, whose name is taken still";
  EXPECT_EQ(begin(later), "web");
}

TEST_F(RegisterTest, SecretsAreNotInTheFile) {
  const std::string secret = Token();
  members_ = nullptr;
  std::string bytes;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    std::stringstream text;
    text << std::ifstream(file.path(), std::ios::binary).rdbuf();
    bytes += text.str();
  }
  EXPECT_THAT(bytes, HasSubstr("tokens"));
  EXPECT_EQ(bytes.find(secret), std::string::npos);
}

TEST_F(RegisterTest, ARevokedNameIsRefusedUntilItJoinsAgain) {
  const auto board = Enrol(Token(), "board"), other = Enrol(Token(), "other");
  const std::string left = Token(Role::kAgent, "third");
  EXPECT_EQ(members_->Revoke("board", kRegisterTime).value(), 1);
  EXPECT_EQ(members_->Revoke("board", kRegisterTime).value(), 0);
  EXPECT_EQ(members_->Revoke("third", kRegisterTime).value(), 0);
  Reopen();
  EXPECT_THAT(std::string(Admit(*board).message()), AllOf(HasSubstr("'board' was revoked"), HasSubstr("another name")));
  EXPECT_TRUE(Admit(*other).ok());
  EXPECT_FALSE(Enrol(left).ok()) << "the name's token was revoked with it";
  const auto again = Enrol(Token(), "board");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(Admit(*again).ok());
  EXPECT_FALSE(Admit(*board).ok());
}

TEST_P(RegisterOfEachKindTest, ARevokedNameCannotRejoinWithItsOwnTokens) {
  const auto guest = Enrol(Token(), "guest");
  const std::string kept = Token();
  const std::string of_bob = pki::RandomSecret(), of_ann = pki::RandomSecret();
  const auto add = [&](const std::string& secret, const std::string& by) {
    return members_->AddToken({secret, Role::kAgent, "", 1, kRegisterTime + absl::Hours(1), by}, kRegisterTime)
        .status();
  };
  ASSERT_TRUE(add(of_bob, "bob").ok());
  ASSERT_TRUE(members_->Revoke("ann", kRegisterTime).ok());
  EXPECT_THAT(std::string(Enrol(kept).status().message()), HasSubstr("was revoked"));
  EXPECT_THAT(std::string(add(of_ann, "ann").message()), HasSubstr("'ann' was revoked")) << "its call came through";
  EXPECT_TRUE(Admit(*guest).ok()) << "who joined before stays";
  ASSERT_TRUE(Enrol(of_bob, "ann").ok());
  EXPECT_TRUE(add(of_ann, "ann").ok());
}

TEST_P(RegisterOfEachKindTest, ACertificateSignedElsewhereIsTakenDownUnlessItsNameWasRevoked) {
  const FarmIdentity ann{Role::kViewer, "ann"};
  const auto facts = [&] { return pki::ReadCertificate(Signer()(ann).value()).value(); };
  const pki::CertificateFacts first = facts();
  EXPECT_TRUE(members_->Admit(ann, first, kRegisterTime).ok());
  EXPECT_TRUE(members_->Admit(ann, first, kRegisterTime).ok());
  ASSERT_EQ(members_->Identities()->size(), 1u);
  EXPECT_EQ((*members_->Identities())[0].vouched_by(), "signed elsewhere");
  EXPECT_TRUE(absl::IsAlreadyExists(Enrol(Token(), "ann").status())) << "its name is taken";
  ASSERT_TRUE(members_->Revoke("ann", kRegisterTime).ok());
  EXPECT_FALSE(members_->Admit(ann, first, kRegisterTime).ok());
  EXPECT_FALSE(members_->Admit(ann, facts(), kRegisterTime).ok());
}

TEST_P(RegisterOfEachKindTest, ACertificateIsGoodUntilItsTimeIsOver) {
  const auto board = Enrol(Token(), "board");
  EXPECT_TRUE(Admit(*board, kRegisterTime + absl::Hours(24) - absl::Seconds(1)).ok());
  EXPECT_THAT(std::string(Admit(*board, kRegisterTime + absl::Hours(24)).message()),
              AllOf(HasSubstr("ended at 2027"), HasSubstr("if another authority signs the certificates")));
}

// The certificate is valid for a day. The holder renews it after 16 hours, by a clock that may be 2.4 hours ahead.
TEST_P(RegisterOfEachKindTest, ACertificateIsNotRenewedEarlyOrAgainAndAgain) {
  const auto board = Enrol(Token(), "board");
  const auto renew = [&](const std::string& pem, absl::Duration after) {
    return members_->Renew(board->identity, pki::ReadCertificate(pem).value(), Signer(kRegisterTime + after),
                           kRegisterTime + after);
  };
  const auto early = renew(board->certificate, absl::Hours(13.5));
  EXPECT_TRUE(absl::IsFailedPrecondition(early.status())) << early.status();
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("'board' is valid until 2027-"));
  const auto renewed = renew(board->certificate, absl::Hours(13.7));
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  for (const std::string& pem : {*renewed, board->certificate}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(renew(pem, absl::Hours(13.8)).status()));
  }
  EXPECT_TRUE(renew(board->certificate, absl::Hours(13.9)).ok()) << "the answer may have been lost";
}

TEST_P(RegisterOfEachKindTest, ARenewalKeepsTheNameAndForgetsWhatIsOver) {
  const auto board = Enrol(Token(), "board");
  const auto facts = pki::ReadCertificate(board->certificate).value();
  const absl::Time later = kRegisterTime + absl::Hours(20);
  const auto renewed = members_->Renew(board->identity, facts, Signer(later), later);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_TRUE(members_->Admit(board->identity, pki::ReadCertificate(*renewed).value(), later).ok());
  EXPECT_TRUE(Admit(*board, later).ok()) << "calls under way have the old one";
  ASSERT_EQ(members_->Identities()->size(), 1u);
  EXPECT_EQ((*members_->Identities())[0].vouched_by(), "token " + last_.id() + " of ann");
  ASSERT_TRUE(members_->Revoke("board", later).ok());
  EXPECT_FALSE(members_->Admit(board->identity, pki::ReadCertificate(*renewed).value(), later).ok());
  EXPECT_FALSE(members_->Renew(board->identity, facts, Signer(later), later).ok());
}

}  // namespace
}  // namespace hone::tracker
