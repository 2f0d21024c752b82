// SendQueue: the output of a connection in order: bytes, parts of files, and descriptors that are
// sent with bytes.
//
// The bytes are one Buffer. Files and descriptors are attached at positions in it; most queues have
// no attachment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/array.h"
#include "net/stream/shared_writes.h"
#include "spate/net/buffer.h"
#include "spate/offload.h"

namespace spate {

class Connection;

class SendQueue {
 public:
  SendQueue() = default;
  ~SendQueue() { detach_all(); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  bool empty() const { return bytes_.empty() && first_ == nullptr; }
  // Returns the number of bytes, including those of files.
  std::size_t size() const { return bytes_.size() + in_files_; }
  // Returns the number of bytes in memory.
  std::size_t in_memory() const { return bytes_.size(); }
  // Drops everything; bytes by reference move to `spent`.
  void clear(Buffer& spent);

  // Appends. False, with nothing appended, when memory runs out.
  bool append(Bytes bytes) { return bytes_.append(bytes); }
  void append(Buffer&& buffer) { bytes_.append(std::move(buffer)); }
  // Appends a reference to bytes that other queues share. False: use append().
  bool append_shared(SharedWrites& writes, Bytes bytes) {
    if (!writes.append_to(bytes_, bytes)) return false;
    shares_ = true;
    return true;
  }
  // Called for bytes that wait for long: must not keep large blocks alive for a few bytes.
  void stop_sharing(Connection& connection);
  // Takes ownership of the file, unless it returns false.
  bool append_file(int file, std::int64_t offset, std::size_t size, ThreadPool& pool);
  // Appends bytes and, with the first of them, duplicates of descriptors. Returns 0 or a negated
  // errno.
  long append_with(Bytes bytes, std::span<const int> descriptors);

  // Passes the next bytes to the transport, at most `most`. `result` is that of the transport.
  struct Sent {
    long result;
    bool was_all;  // All bytes passed were taken.
  };
  Sent send(Connection& connection, std::size_t max);
  // Returns whether a thread reads the file at the front: the connection is then called.
  bool is_waiting() const;

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
  std::size_t before_ = 0;  // Bytes before the last attachment.
  std::size_t in_files_ = 0;
  bool shares_ = false;  // append_shared() has added bytes.
};

}  // namespace spate
