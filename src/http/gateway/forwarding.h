// Forwarding: one request that is forwarded to an upstream, with its response; or, after an
// upgrade, the tunnel between both ends.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/list.h"
#include "http/gateway/upstream_pool.h"
#include "spate/http/call.h"
#include "spate/http/exchange.h"
#include "spate/http/gateway.h"
#include "spate/net/relay.h"
#include "spate/timer.h"

namespace spate::http {

class GatewayCore;

class Forwarding final : public CallHandler, public Linked<Forwarding> {
 public:
  Forwarding(GatewayCore& core, Exchange exchange, OnUnreached on_unreached);
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding();

  // May destroy this.
  void begin(std::string_view upstream);
  // As above, at one of GatewayOptions::upstreams.
  void begin_at_any();
  bool is_tunnel() const { return is_tunnel_; }

  // ---- CallHandler: events of the upstream

  void on_upload() override;
  void on_informational(Status status, const FieldsView& fields) override;
  void on_response(const Response& response) override;
  void on_body(Bytes bytes) override;
  void on_body_end(const FieldsView& trailers) override;
  void on_drained() override { exchange_.resume(); }
  void on_upgraded(const Response& response, Stream stream) override;
  void on_closed(std::error_code error) override;

 private:
  // Events of the client.
  class Front final : public ExchangeHandler {
   public:
    explicit Front(Forwarding& forwarding) : forwarding_(forwarding) {}
    void on_body(Bytes bytes) override { forwarding_.take_upload(bytes); }
    void on_body_end(const FieldsView& trailers) override { forwarding_.end_upload(trailers); }
    void on_client_end() override { forwarding_.on_client_end(); }
    void on_drained() override { forwarding_.call_.resume(); }
    void on_closed(std::error_code) override { forwarding_.done(); }

   private:
    Forwarding& forwarding_;
  };

  void take_upload(Bytes bytes);
  void end_upload(const FieldsView& trailers);
  void on_client_end();

  void postpone();
  void on_timeout();
  bool waits_for_client() const;
  bool begin_at_next();
  bool may_try_another(std::error_code error) const;
  bool try_another(std::error_code error);
  bool ask_for_another(std::error_code error);
  void fail(std::error_code error);
  void refuse(Status status);
  void give_up();
  void done();  // Destroys this.

  GatewayCore& core_;
  Front front_{*this};
  OnUnreached on_unreached_;
  Exchange exchange_;
  Call call_;
  UpstreamUse use_;
  std::vector<const Backend*> tried_;
  unsigned sent_ = 0;  // How many of them may have received the request.
  Fields trailers_;  // Trailers of the response.
  Relaying relaying_;
  Timer timeout_;
  bool has_taken_body_ = false;  // A part of the client's body may have been read.
  bool is_uploading_ = false;
  bool has_begun_ = false;  // The response has begun.
  bool is_tunnel_ = false;
};

}  // namespace spate::http
