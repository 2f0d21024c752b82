// evbuffer_file_segment: a part of a file that may be in several evbuffers.
//
// Semantics: event2/buffer.h (evbuffer_file_segment_new and the functions after it); probed: when
// the file is read into memory, and which descriptors are closed.
//
// Its pieces and the program own it together. The file is loaded when the segment is made, with
// EVBUF_FS_DISABLE_SENDFILE; otherwise when a part of it is added to a buffer that does not only
// drain to a descriptor, or when its bytes are read.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>

#include "compat/libevent/buffer_api.h"

struct evbuffer_file_segment {
 public:
  // Returns null if the range is invalid or not available, or memory runs out. A `length` of -1 is
  // up to the end.
  static evbuffer_file_segment* create(int fd, off_t offset, off_t length, unsigned flags);
  evbuffer_file_segment(const evbuffer_file_segment&) = delete;
  evbuffer_file_segment& operator=(const evbuffer_file_segment&) = delete;

  void take() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void give_up();
  void set_cleanup(evbuffer_file_segment_cleanup_cb cleanup, void* argument) {
    cleanup_ = cleanup;
    argument_ = argument;
  }

  int fd() const { return fd_; }
  off_t place_in_file() const { return offset_; }
  off_t length() const { return length_; }
  // Null until load() has succeeded.
  unsigned char* contents() const { return contents_.load(std::memory_order_acquire); }
  [[nodiscard]] bool load();

 private:
  evbuffer_file_segment(int fd, off_t offset, off_t length, unsigned flags);
  ~evbuffer_file_segment();
  [[nodiscard]] bool map();
  [[nodiscard]] bool read_all();

  std::atomic<int> owners_{1};
  int fd_;
  unsigned flags_;
  off_t offset_;
  off_t length_;
  std::atomic<unsigned char*> contents_{nullptr};
  void* mapped_ = nullptr;
  std::size_t mapped_size_ = 0;
  void* lock_ = nullptr;
  evbuffer_file_segment_cleanup_cb cleanup_ = nullptr;
  void* argument_ = nullptr;
};
