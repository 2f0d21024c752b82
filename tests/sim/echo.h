// A server and a client as in real programs: they do not depend on the simulation.
#pragma once

#include <string>
#include <utility>

#include "spate/net/bytes.h"
#include "spate/net/connect.h"
#include "spate/net/server.h"
#include "spate/net/stream.h"

namespace spate::testing {

struct Echo : Session {
  std::size_t on_data(Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

// Sends a text, and closes when as many bytes have been echoed.
class EchoClient final : public StreamHandler {
 public:
  explicit EchoClient(std::string text) : text_(std::move(text)) {}

  void start(Loop& loop, const Address& server, const ConnectOptions& options = {}) {
    error_ = stream_.connect(loop, server, *this, options);
    stream_.write(text_);
  }

  Stream& stream() { return stream_; }
  bool is_done() const { return is_done_; }
  const std::string& echoed() const { return echoed_; }
  bool has_all() const { return echoed_ == text_; }
  std::error_code error() const { return error_; }

  std::size_t on_data(Bytes bytes) override {
    echoed_ += text_of(bytes);
    if (echoed_.size() == text_.size() && closes_) stream_.close();
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    error_ = error;
    is_done_ = true;
  }
  void keep_open() { closes_ = false; }

 private:
  std::string text_;
  std::string echoed_;
  std::error_code error_;
  bool closes_ = true;
  bool is_done_ = false;
  Stream stream_;
};

}  // namespace spate::testing
