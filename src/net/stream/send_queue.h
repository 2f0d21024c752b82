// SendQueue: what a connection has still to send, in its order: bytes, parts of files, and
// descriptors that travel with bytes.
//
// The bytes are one Buffer. What is not bytes is attached at a place in it; most queues have no
// attachment at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/array.h"
#include "net/stream/shared_writes.h"
#include "spate/net/buffer.h"
#include "sys/descriptor.h"

namespace spate {

class Connection;

class SendQueue {
 public:
  SendQueue() = default;
  ~SendQueue() { detach_all(); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  bool empty() const { return bytes_.empty() && first_ == nullptr; }
  // Bytes to be sent, those of files included.
  std::size_t size() const { return bytes_.size() + in_files_; }
  // Those that are in memory.
  std::size_t in_memory() const { return bytes_.size(); }
  // Drops everything; bytes by reference go to `spent`.
  void clear(Buffer& spent);

  // False when memory runs out, and nothing has been appended.
  bool append(Bytes bytes) { return bytes_.append(bytes); }
  void append(Buffer&& buffer) { bytes_.append(std::move(buffer)); }
  // By way of what other queues show, too. False: append() it.
  bool append_shared(SharedWrites& writes, Bytes bytes) {
    if (!writes.append_to(bytes_, bytes)) return false;
    shares_ = true;
    return true;
  }
  // What waits for long is not to keep blocks of which it needs little.
  void stop_sharing(Connection& connection);
  // Takes the file over, unless it answers false.
  bool append_file(int file, std::int64_t offset, std::size_t size);
  // Bytes and, with the first of them, duplicates of descriptors. 0 or a negated errno.
  long append_with(Bytes bytes, std::span<const int> descriptors);

  // What comes next is given to the transport, `most` bytes at most. `result` is its answer.
  struct Sent {
    long result;
    bool was_all;  // Nothing was left of what was given.
  };
  Sent send(Connection& connection, std::size_t max);

 private:
  struct Attachment;

  void attach(Attachment* attachment, std::size_t behind);
  void detach_first();
  void detach_all();
  Sent send_bytes(Connection& connection, std::size_t max);
  Sent send_with_file(Connection& connection, std::size_t max);
  Sent send_file(Connection& connection, std::size_t max);
  std::size_t run() const;
  void consume(Connection& connection, std::size_t count);
  void consume_file(std::size_t count);

  Buffer bytes_;
  Attachment* first_ = nullptr;
  Attachment* last_ = nullptr;
  std::size_t before_ = 0;  // Bytes that come before the last attachment.
  std::size_t in_files_ = 0;
  bool shares_ = false;  // append_shared() has put something in.
};

}  // namespace spate
