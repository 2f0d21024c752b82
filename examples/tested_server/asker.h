// A client of the lock server, for both tests.
#pragma once

#include <string>
#include <string_view>

#include "spate/net/connect.h"
#include "spate/net/stream.h"

class Asker final : public spate::StreamHandler {
 public:
  Asker(spate::Loop& loop, const spate::Address& server) {
    is_over_ = static_cast<bool>(stream_.connect(loop, server, *this));
  }

  void say(std::string_view line) { stream_.write(std::string(line) + '\n'); }
  // All responses, one per line.
  const std::string& answers() const { return answers_; }
  bool is_over() const { return is_over_; }

  std::size_t on_data(spate::Bytes bytes) override {
    answers_ += spate::text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_over_ = true; }

 private:
  std::string answers_;
  bool is_over_ = false;
  spate::Stream stream_;
};
