// SessionEngine: makes Sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "http/codec/http2_session.h"
#include "spate/http/http2.h"

namespace spate::http {

class SessionEngine final : public Http2Engine {
 public:
  explicit SessionEngine(const Http2Options& options) : options_(options) {}
  std::unique_ptr<Http2Session> make_server(Http2Events& events,
                                            std::size_t max_head) const override;
  std::unique_ptr<Http2Session> make_client(Http2Events& events,
                                            std::size_t max_head) const override;
  std::uint32_t max_streams() const override { return options_.max_streams; }

 private:
  const Http2Options options_;
};

}  // namespace spate::http
