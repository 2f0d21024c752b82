// Tunneling: one end of a tunnel for bytes of a PairWorld, and all that may be done with it; of a
// client, first the call for it.
#pragma once

#include <cstddef>
#include <string>

#include "spate/http/client.h"
#include "spate/net/stream.h"

namespace spate::testing {

class PairWorld;

class Tunneling final : public http::CallHandler, public StreamHandler {
 public:
  // The other end has the same number; 0: there is none.
  Tunneling(PairWorld& world, bool is_client, std::size_t number)
      : is_client_(is_client), number_(number), world_(world) {}

  // Of a client.
  void ask();
  // Of either, once it is there.
  void open(Stream stream);
  // Something of what its user may do. It may be gone afterwards.
  void act();
  // Holds nobody up any more.
  void finish();
  // Nothing is to be told any more.
  void silence() { is_silent_ = true; }
  // The client goes, and a call with it; a tunnel does not.
  void silence_call() { is_silent_ |= call_.is_open(); }
  bool is_open() const { return call_.is_open() || stream_.is_open(); }
  bool is_client() const { return is_client_; }
  std::size_t number() const { return number_; }
  void lose_other_end() { number_ = 0; }
  void expect_over() const;

  void on_response(const http::Response& response) override;
  void on_body(Bytes bytes) override;
  void on_upgraded(const http::Response& response, Stream stream) override;
  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

 private:
  void note(const char* what);
  void tunnel();

  const bool is_client_;
  std::size_t number_;
  PairWorld& world_;
  std::string received_;
  bool has_other_ended_ = false;
  bool is_paused_ = false;
  bool is_silent_ = false;
  bool is_closed_ = false;
  http::Call call_;  // Destroyed first, as this.
  Stream stream_;
};

}  // namespace spate::testing
