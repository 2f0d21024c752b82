// FileRanges: sends several ranges of a file with one descriptor, in pieces as the client reads.
// Its exchange owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "http/server/owned_handler.h"
#include "spate/http/exchange.h"
#include "spate/http/range.h"
#include "sys/descriptor.h"

namespace spate::http {

class FileRanges final : public OwnedHandler {
 public:
  struct Part {
    std::string head;  // Sent before the range.
    ByteRange range;
  };

  // `exchange` must have begun the response, with the size of all parts and of `end`.
  FileRanges(Exchange exchange, sys::Descriptor file, std::vector<Part> parts, std::string end)
      : exchange_(std::move(exchange)),
        file_(std::move(file)),
        parts_(std::move(parts)),
        end_(std::move(end)) {}

  // Sends until the queue is full. May destroy this.
  void go_on();
  void on_drained() override { go_on(); }

 private:
  bool send_piece();

  Exchange exchange_;
  sys::Descriptor file_;
  const std::vector<Part> parts_;
  const std::string end_;
  std::size_t next_ = 0;    // The index of the next part.
  std::uint64_t sent_ = 0;  // Bytes of its range that were sent.
};

}  // namespace spate::http
