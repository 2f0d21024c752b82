#include "net/connect/connecting_end.h"

#include <new>
#include <utility>

#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "spate/named_callback.h"

namespace spate {

ConnectingEnd* ConnectingEnd::begin(Stream& stream, Loop& loop, StreamHandler& handler) {
  LoopStreams* loop_state = LoopStreams::of(loop);
  auto* end = loop_state == nullptr ? nullptr : new (std::nothrow) ConnectingEnd(*loop_state);
  if (end == nullptr) return nullptr;
  end->connection_ = Connection::make(*end);
  if (end->connection_ == nullptr) {
    delete end;
    return nullptr;
  }
  stream = Connection::stream_of(end->connection_);
  stream.start(handler);
  return end;
}

ConnectingEnd::ConnectingEnd(LoopStreams& loop_state)
    : Transport(loop_state),
      later_(loop_state.loop(),
             named<Timer, ActiveKind::connecting>(bind<&ConnectingEnd::settle>(this))) {}

void ConnectingEnd::on_result(Result<Stream> made) {
  made_ = std::move(made);
  settle();
}

// Delayed while a callback of this connection is running the loop.
void ConnectingEnd::settle() {
  if (connection_->is_calling()) {
    if (!later_.start(Nanos{1'000'000})) later_.feed();
    return;
  }
  if (!made_) return connection_->on_refused(made_.error());
  connection_->on_connected(std::move(*made_), is_ended_);
}

void ConnectingEnd::close(Connection&, bool) {
  attempt_.cancel();
  later_.stop();
  made_ = Stream();
}

}  // namespace spate
