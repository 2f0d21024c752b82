// FileSender: sends a file, or several ranges of it, in pieces as the client reads. The disk is
// read by a thread of the pool. Its exchange owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/server/file_root.h"
#include "http/server/owned_handler.h"
#include "spate/http/exchange.h"
#include "spate/http/range.h"
#include "spate/net/buffer.h"
#include "spate/offload.h"

namespace spate::http {

class FileSender final : public OwnedHandler {
 public:
  struct Part {
    std::string head;  // Sent before the range.
    ByteRange range;
  };
  // Shared with a job of the pool, which may outlive the FileSender.
  struct Source {
    std::shared_ptr<const FileRoot> root;
    sys::Descriptor file;
  };

  // `exchange` must have begun the response, with the size of all parts and of `end`.
  FileSender(Exchange exchange, std::shared_ptr<Source> source, std::vector<Part> parts,
             std::string end, ThreadPool& pool)
      : exchange_(std::move(exchange)),
        source_(std::move(source)),
        parts_(std::move(parts)),
        end_(std::move(end)),
        pool_(pool) {}

  // Sends until the queue is full. May destroy this.
  void go_on();
  void on_drained() override { go_on(); }

 private:
  struct Piece {
    std::size_t size = 0;
    std::int64_t offset = 0;
  };
  // A piece that is copied.
  struct Loaded {
    Buffer bytes;
    long result = 0;  // The number of bytes, or a negated errno.
  };

  static Loaded load(const Source& source, Piece piece, Waiting waiting);
  Piece next_piece() const;
  // Return false if the piece is waited for, or the exchange was aborted, which may destroy this.
  bool send_piece();
  bool wait_for(Piece piece);
  bool send(Loaded loaded);
  bool send_as_file(Piece piece);
  std::error_code send_from_file(Piece piece);
  void took(std::size_t count);
  void on_loaded(Loaded loaded);

  Exchange exchange_;
  const std::shared_ptr<Source> source_;
  const std::vector<Part> parts_;
  const std::string end_;
  ThreadPool& pool_;
  Offloading job_;
  bool is_loading_ = false;
  bool may_duplicate_ = true;  // False after the process ran out of descriptors.
  std::size_t next_ = 0;       // The index of the next part.
  std::uint64_t sent_ = 0;     // Bytes of its range that were sent.
};

}  // namespace spate::http
