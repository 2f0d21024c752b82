// Tunneling: one end of a tunnel for bytes of a PairWorld, and all operations on it; a client's
// begins with the call.
#pragma once

#include <cstddef>
#include <string>

#include "spate/http/client.h"
#include "spate/net/stream.h"

namespace spate::testing {

class PairWorld;

class Tunneling final : public http::CallHandler, public StreamHandler {
 public:
  // The other end has the same number; 0: it does not exist.
  Tunneling(PairWorld& world, bool is_client, std::size_t number)
      : is_client_(is_client), number_(number), world_(world) {}

  // Requests the client's side.
  void ask();
  // Starts either side, once the upgrade is complete.
  void open(Stream stream);
  // Performs a random operation. Its owner may destroy it meanwhile.
  void act();
  // Lifts everything that delays its end.
  void finish();
  // No callback may come from now on.
  void silence() { is_silent_ = true; }
  // The Client is destroyed, and a call with it; a tunnel is not.
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
