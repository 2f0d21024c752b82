// PipeState: the state behind a RequestPipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/abandonable.h"
#include "base/fifo.h"
#include "base/slab.h"
#include "spate/function.h"
#include "spate/hooks.h"
#include "spate/net/request_pipe.h"
#include "spate/timer.h"

namespace spate {

// A request without a result, or one whose response will be skipped.
struct PipeEntry : Linked<PipeEntry> {
  enum class Place : std::uint8_t { waiting, sent, failed };

  OnPipeResponse callback;  // Empty: the response is skipped.
  Buffer bytes;             // If it waits, or may be repeated.
  PipeRequest* handle = nullptr;
  Nanos deadline = kForever;   // In loop time.
  std::uint64_t arrivals = 0;  // PipeState::arrivals_ when it was sent.
  std::error_code error;       // If it failed.
  std::uint8_t repeats = 0;
  Place place = Place::waiting;
  bool is_setup = false;  // Made in on_connected.
};

class PipeState final : private StreamHandler, private Abandonable<PipeState> {
 public:
  static Result<PipeState*> make(Loop& loop, const Address& address, std::string_view host,
                                 std::uint16_t port, const PipeFraming& framing,
                                 PipeHandlers handlers, const PipeOptions& options);
  // Called by the handle's destructor.
  void abandon();
  bool may_be_touched() const;

  std::error_code request(Bytes bytes, OnPipeResponse callback, const PipeRequestOptions& options);
  std::error_code send(Bytes bytes);
  void connect();
  void reset();
  void close();
  void drain(Function<void()> done);

  bool is_connected() const { return phase_ == Phase::ready && stream_.is_writable(); }
  Client::State state() const { return client_.state(); }
  std::size_t pending() const { return live_; }
  std::size_t queued() const { return waiting_bytes_ + stream_.queued(); }
  bool is_full() const {
    return requests() >= options_.max_requests || queued() > options_.limits.high;
  }
  std::error_code last_error() const { return last_error_; }

 private:
  friend class Abandonable<PipeState>;
  friend class PipeRequest;
  // `setup`: requests of on_connected are without a response.
  enum class Phase : std::uint8_t { down, setup, ready };

  PipeState(Loop& loop, const PipeFraming& framing, PipeHandlers handlers,
            const PipeOptions& options);
  ~PipeState();

  std::size_t on_data(Bytes bytes) override;
  void on_drained() override { relieve(); }
  void on_closed(std::error_code error) override;

  // ---- connecting
  void on_attempt(Result<Stream> result);
  void begin(Stream stream);
  void become_ready();
  void flush();
  void lose(std::error_code error);
  void repeat_or_fail();

  // ---- requests
  bool is_setup_request() const { return in_setup_ && phase_ == Phase::setup; }
  std::error_code refusal(std::size_t size) const;
  std::error_code place(PipeEntry& entry, Bytes bytes);
  std::error_code write(Bytes bytes);
  PipeEntry* take_entry();
  OnPipeResponse release(PipeEntry& entry);
  void drop(PipeEntry& entry);
  void push(Fifo<PipeEntry>& queue, PipeEntry& entry, PipeEntry::Place place);
  void fail(PipeEntry& entry, std::error_code error);
  void fail_all(Fifo<PipeEntry>& queue, std::error_code error);
  std::size_t requests() const { return waiting_.size() + sent_.size(); }

  // ---- results
  bool deliver(Bytes message);
  bool call_setup(PipeEntry& entry, Bytes message);
  void break_off(std::error_code error);
  void settle();
  bool settle_failed();
  void fail_given_up();
  bool relieve();
  bool finish_drain();

  // ---- deadlines: pipe_deadlines.cc
  void arm(Nanos deadline);
  void on_deadlines();
  bool expire_sent(Nanos now, Nanos& next);
  bool expire_one(PipeEntry& entry, bool& is_dead);
  void expire_waiting(Nanos now, Nanos& next);

  void cancel(PipeEntry& entry);
  void on_loop_end();
  void drop_all();

  Loop* loop_;  // nullptr after its end.
  PipeFraming framing_;
  PipeHandlers handlers_;
  const PipeOptions options_;
  Slab<PipeEntry> entries_;
  Fifo<PipeEntry> waiting_;  // For a connection, or for the end of the set-up.
  Fifo<PipeEntry> sent_;
  Fifo<PipeEntry> failed_;  // Their callbacks are due.
  std::size_t waiting_bytes_ = 0;
  std::size_t live_ = 0;          // Requests without a result.
  std::size_t setup_left_ = 0;    // Set-up requests without a response.
  std::uint64_t arrivals_ = 0;    // Grows when a part of a response arrives.
  std::uint64_t connection_ = 0;  // Grows when a connection is lost.
  std::error_code last_error_;
  std::optional<std::error_code> unreported_;  // For on_disconnected.
  Phase phase_ = Phase::down;
  bool in_setup_ = false;  // Inside on_connected, or the callback of a set-up request.
  bool is_closed_ = false;
  bool is_draining_ = false;
  bool was_full_ = false;
  Function<void()> done_;
  Timer settle_;
  Timer deadlines_;
  Cleanup loop_ends_;
  Client client_;
  Stream stream_;
};

}  // namespace spate
