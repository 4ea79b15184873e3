// SPDX-License-Identifier: Apache-2.0
// What Asio and Beast are besides templates, compiled once instead of in each source that includes them.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
