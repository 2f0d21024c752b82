// spate_stream: a Stream and its handler.
#pragma once

#include "c/net.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate_net.h"

struct spate_stream final : spate::StreamHandler {
  explicit spate_stream(spate_loop& of) : loop(of) {}
  spate_stream(spate_loop& of, spate::Stream of_loop) : loop(of), stream(std::move(of_loop)) {}

  // Returns 0, or -EINVAL.
  int set_callbacks(const spate_stream_callbacks* table, void* of_program);

  std::size_t on_data(spate::Bytes bytes) override;
  void on_end() override;
  void on_connected() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  spate_loop& loop;
  spate::Stream stream;
  const spate_stream_callbacks* callbacks = nullptr;
  void* data = nullptr;
  std::size_t max_queued = spate::QueueLimits{}.max;
  spate::Connecting securing{};  // During a handshake.
  bool is_empty = false;         // A handshake has taken `stream`, and is running or has failed.
};
