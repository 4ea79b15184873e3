// SPDX-License-Identifier: Apache-2.0
#include "pki/signature.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"
#include "pki/certificates.h"

namespace hone::pki {
namespace {

struct Member {
  std::string key, certificate;
};

Member MemberOf(const Authority& authority) {
  Member member{MakeKey(), ""};
  const Validity validity{absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1)};
  member.certificate =
      authority.SignMember(MakeRequest(member.key).value(), FarmIdentity{Role::kClient, "anna"}, validity).value();
  return member;
}

class SignatureTest : public testing::Test {
 protected:
  Authority authority_ = Authority::Make({absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(24)}).value();
  Member anna_ = MemberOf(authority_), other_ = MemberOf(authority_);
};

TEST_F(SignatureTest, ASignatureHoldsForItsTextAndItsKey) {
  const std::string signature = SignText("passed", anna_.key).value();
  EXPECT_TRUE(CheckSignature("passed", signature, anna_.certificate).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(CheckSignature("Passed", signature, anna_.certificate)));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckSignature("passed", signature, other_.certificate)));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckSignature("passed", "", anna_.certificate)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSignature("passed", "*", anna_.certificate)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSignature("passed", signature, "nothing")));
}

TEST_F(SignatureTest, TheIdentityFileOfAMemberSigns) {
  const std::string both = anna_.key + anna_.certificate;  // as in identity.pem
  const std::string signature = SignText("passed", both).value();
  EXPECT_TRUE(CheckSignature("passed", signature, both).ok());
  EXPECT_FALSE(SignText("passed", anna_.certificate).ok());
}

}  // namespace
}  // namespace hone::pki
