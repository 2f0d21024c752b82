// Asking: the user's side of one call of a PairWorld's client, and all operations on it.
#pragma once

#include <cstddef>
#include <string>

#include "http/random_handlings.h"
#include "spate/http/client.h"

namespace spate::testing {

class PairWorld;

class Asking final : public http::CallHandler {
 public:
  Asking(PairWorld& world, std::size_t number) : number_(number), world_(world) {}

  void begin(ExpectedAnswer& expected);
  // Performs a random operation. Its owner may destroy it meanwhile.
  void act();
  // Lifts everything that delays its end.
  void finish();
  // No callback may come from now on.
  void silence() { is_silent_ = true; }
  bool is_open() const { return call_.is_open(); }
  void expect_over() const;

  void on_upload() override;
  void on_informational(http::Status status, const http::FieldsView& fields) override;
  void on_response(const http::Response& response) override;
  void on_body(Bytes bytes) override;
  void on_body_end(const http::FieldsView& trailers) override;
  void on_drained() override;
  void on_upgraded(const http::Response&, Stream) override { ADD_FAILURE() << "not asked for"; }
  void on_closed(std::error_code error) override;

 private:
  enum class Stage { asked, answered, ended };
  void note(const char* what);
  const ExpectedAnswer* answer() const;
  void upload(std::size_t most);

  const std::size_t number_;
  PairWorld& world_;
  Stage stage_ = Stage::asked;
  std::size_t sent_ = 0;  // Bytes of the upload.
  bool is_upload_ = false;
  bool has_ended_ = false;  // That.
  bool was_upload_told_ = false;
  bool is_paused_ = false;
  bool is_silent_ = false;
  bool is_closed_ = false;
  bool is_sized_ = false;  // Whether the response's body is sized.
  bool has_body_ended_ = false;
  std::size_t attempt_ = 0;  // The attempt that was answered; 0: the server itself answered.
  http::Method method_ = http::Method::get;
  std::string received_;
  http::Call call_;  // Destroyed first.
};

}  // namespace spate::testing
