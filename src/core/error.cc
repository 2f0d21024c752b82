#include "spate/error.h"

#include <string>

#include "base/immortal.h"

namespace spate {

namespace {

class Category final : public std::error_category {
 public:
  constexpr Category() = default;
  const char* name() const noexcept override { return "spate"; }
  std::string message(int value) const override {
    switch (static_cast<Error>(value)) {
      case Error::loop_forked:
        return "the loop belongs to the parent process: call after_fork() first";
      case Error::unknown_backend:
        return "no backend of that name";
      case Error::fd_out_of_range:
        return "the descriptor is too high for select";
      case Error::not_pollable:
        return "this backend has no descriptor that can be polled";
      case Error::idle_timeout:
        return "the connection was idle for too long";
      case Error::read_timeout:
        return "the peer sent nothing for too long";
      case Error::write_timeout:
        return "the peer received nothing for too long";
      case Error::connect_timeout:
        return "the connection was not established in time";
      case Error::queue_full:
        return "the queue is full";
      case Error::unread_full:
        return "too many bytes were left unread";
      case Error::deadline:
        return "not done in time";
      case Error::tls_handshake:
        return "the TLS handshake has failed";
      case Error::tls_certificate:
        return "a certificate was not accepted";
      case Error::tls_truncated:
        return "the TLS connection was truncated";
      case Error::tls_protocol:
        return "the peer violated the TLS protocol";
      case Error::ended:
        return "the peer has ended the connection";
      case Error::truncated:
        return "the peer has ended the connection inside a message";
    }
    return "unknown error";
  }
};

constinit Immortal<Category> category;

}  // namespace

const std::error_category& error_category() { return category.object; }

std::error_code make_error_code(Error error) { return {static_cast<int>(error), error_category()}; }

}  // namespace spate
