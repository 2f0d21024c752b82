#include "http/client/client_connection.h"

#include <algorithm>
#include <utility>

#include "http/client/client_core.h"
#include "http/client/origin.h"
#include "spate/loop.h"
#include "spate/net/stream_use.h"

namespace spate::http {

ClientConnection::ClientConnection(Origin& origin, Stream stream)
    : origin_(&origin), stream_(std::move(stream)) {
  set_use(stream_, StreamUse::http_client);
}

// Marks the connection idle: an idle stream does not keep the loop alive.
bool ClientConnection::rest(Nanos idle_timeout) {
  const Nanos kept = std::min(idle_timeout, kept_for_);
  if (kept <= Nanos{0} || !stream_.is_writable() || !stream_.set_idle_timeout(kept)) return false;
  is_idle_ = true;
  idle_since_ = origin_->core().loop().now();
  stream_.resume();
  if (stream_.fd() >= 0) {
    origin_->core().loop().unref();
    is_unreferenced_ = true;
    set_use(stream_, StreamUse::http_client_idle);
  }
  return true;
}

// If the stream was closed without on_closed(), its loop was destroyed, and must not be referenced.
void ClientConnection::wake() {
  if (!std::exchange(is_idle_, false)) return;
  if (std::exchange(is_unreferenced_, false) && stream_.is_open()) {
    stream_.loop().ref();
    set_use(stream_, StreamUse::http_client);
  }
  if (stream_.is_open()) stream_.set_idle_timeout(Nanos{0});
}

void ClientConnection::forget_stream() {
  if (std::exchange(is_unreferenced_, false)) origin_->core().loop().ref();
}

// Removes it from the pool. May destroy this, unless the caller holds a reference.
void ClientConnection::drop(Ending ending) {
  if (origin_ != nullptr) origin_->drop(*this, ending);
}

}  // namespace spate::http
