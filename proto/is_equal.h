// SPDX-License-Identifier: Apache-2.0
// Compares messages field by field. Their serialized texts do not do: the entries of a map stand there in any order.
#ifndef HONE_PROTO_IS_EQUAL_H_
#define HONE_PROTO_IS_EQUAL_H_

#include <google/protobuf/util/message_differencer.h>

namespace hone {

inline bool IsEqual(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

}  // namespace hone

#endif  // HONE_PROTO_IS_EQUAL_H_
