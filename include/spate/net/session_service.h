// Internals of serve() (server.h). Not for programs.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "spate/error.h"
#include "spate/net/address.h"
#include "spate/net/session.h"
#include "spate/net/stream.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate {

// A callable that opens a T for a Stream, with copies of `args`.
template <class T, class... Args>
auto session_maker(Args&&... args) {
  using Arguments = std::tuple<std::unwrap_ref_decay_t<Args>...>;
  return [arguments = Arguments(std::forward<Args>(args)...)](Sessions<T>& sessions,
                                                              Stream stream) mutable {
    std::apply([&](auto&... each) { sessions.open(std::move(stream), each...); }, arguments);
  };
}

// One worker's sessions.
template <class T, class Make>
class SessionService final : public WorkerService {
 public:
  SessionService(Loop& loop, Make make) : sessions_(loop), make_(std::move(make)) {}

  void on_accept(Stream stream, const Address&) override { make_(sessions_, std::move(stream)); }
  void on_drain(Nanos) override { sessions_.drain(kForever); }  // The worker watches the grace.
  void on_end() override { sessions_.end_all(Error::deadline); }

 private:
  Sessions<T> sessions_;
  Make make_;
};

}  // namespace spate
