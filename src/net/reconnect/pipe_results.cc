// The results of a RequestPipe's requests: responses, and failures.
#include <cerrno>
#include <utility>

#include "core/user_code.h"
#include "net/reconnect/pipe_state.h"
#include "sys/descriptor.h"

namespace spate {

std::size_t PipeState::on_data(Bytes bytes) {
  const std::uint64_t connection = connection_;
  std::size_t used = 0;
  for (;;) {
    const Frame frame = framing_.next(framing_.framing, bytes.subspan(used));
    if (frame.state == Frame::State::unfinished) {
      if (used == bytes.size()) break;
      ++arrivals_;
      if (!stream_.want(frame.size)) break_off(sys::error_code(-ENOMEM));
      break;
    }
    const bool is_broken = frame.state == Frame::State::broken || frame.size == 0;
    used += frame.size;
    if (is_broken) {
      if (!sent_.empty()) fail(*sent_.pop(), sys::error_code(-EPROTO));
      break_off(sys::error_code(-EPROTO));
      break;
    }
    if (!deliver(frame.message)) return used;
    if (connection != connection_) break;
  }
  relieve();
  return used;
}

// Passes a message to its callback. False if this was destroyed.
bool PipeState::deliver(Bytes message) {
  if (framing_.is_push != nullptr && framing_.is_push(framing_.framing, message)) {
    if (!handlers_.on_push) return true;
    return call([&] { call_user("RequestPipe", [&] { handlers_.on_push(message); }); });
  }
  PipeEntry* entry = sent_.pop();
  if (entry == nullptr) {
    break_off(sys::error_code(-EPROTO));
    return true;
  }
  ++arrivals_;
  if (entry->is_setup) return call_setup(*entry, message);
  OnPipeResponse callback = release(*entry);
  drop(*entry);
  if (!callback) return true;
  const bool is_alive = call([&] {
    call_user("RequestPipe", [&] { callback(message); });
    callback = nullptr;  // Its destructor is user code, too.
  });
  return is_alive && finish_drain();
}

bool PipeState::call_setup(PipeEntry& entry, Bytes message) {
  const std::uint64_t connection = connection_;
  OnPipeResponse callback = release(entry);
  drop(entry);
  const bool was_in_setup = std::exchange(in_setup_, true);
  const bool is_alive = call([&] {
    if (callback) call_user("RequestPipe", [&] { callback(message); });
    callback = nullptr;
  });
  if (!is_alive) return false;
  in_setup_ = was_in_setup;
  if (connection != connection_) return true;
  --setup_left_;
  if (!in_setup_) become_ready();
  return true;
}

// Reports failed requests. Called by the loop. Each call may destroy this, or run the loop, which
// then continues here.
void PipeState::settle() {
  settle_.stop();
  if (unreported_) {
    const std::error_code error = *std::exchange(unreported_, {});
    settle_.feed();
    if (handlers_.on_disconnected &&
        !call([&] { call_user("RequestPipe", [&] { handlers_.on_disconnected(error); }); }))
      return;
  }
  fail_given_up();
  if (!settle_failed() || !relieve()) return;
  finish_drain();
}

// False if this was destroyed.
bool PipeState::settle_failed() {
  while (PipeEntry* entry = failed_.pop()) {
    if (!failed_.empty()) settle_.feed();
    const std::error_code error = entry->error;
    OnPipeResponse callback = release(*entry);
    drop(*entry);
    const bool is_alive = call([&] {
      call_user("RequestPipe", [&] { callback(std::unexpected(error)); });
      callback = nullptr;
    });
    if (!is_alive) return false;
  }
  settle_.stop();
  return true;
}

// Fails the waiting requests when there will be no connection.
void PipeState::fail_given_up() {
  if (!is_closed_ && phase_ == Phase::down && client_.state() == Client::State::idle &&
      !waiting_.empty())
    fail_all(waiting_, last_error_);
}

// Calls on_drained if there is room again. False if this was destroyed.
bool PipeState::relieve() {
  if (!was_full_ || is_closed_) return true;
  if (requests() > options_.max_requests / 2 || queued() > options_.limits.low) return true;
  was_full_ = false;
  if (!handlers_.on_drained) return true;
  return call([&] { call_user("RequestPipe", handlers_.on_drained); });
}

// Closes after the last result. False if this was destroyed.
bool PipeState::finish_drain() {
  if (!is_draining_ || live_ != 0) return true;
  close();
  auto done = std::exchange(done_, nullptr);
  if (!done) return true;
  return call([&] {
    call_user("RequestPipe", done);
    done = nullptr;
  });
}

}  // namespace spate
