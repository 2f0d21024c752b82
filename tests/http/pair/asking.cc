#include "http/pair/asking.h"

#include <utility>

#include "http/pair/pair_world.h"

namespace spate::testing {

using http::Method;

void Asking::begin(ExpectedAnswer& expected) {
  Random& random = world_.random;
  const bool has_body = random.one_in(2);
  expected.method = has_body           ? random.one_in(2) ? Method::post : Method::put
                    : random.one_in(5) ? Method::head
                                       : Method::get;
  if (has_body) expected.body = letters(number_, random.below(random.one_in(4) ? kMostBody : 200));
  http::CallOptions options{.method = expected.method};
  is_upload_ = has_body && random.one_in(2);
  if (is_upload_) {
    options.upload = random.one_in(2) ? expected.body.size() : http::kUnknownSize;
    if (random.one_in(4)) options.expect_continue = Nanos{1'000'000'000};
  } else {
    options.body = bytes_of(expected.body);
  }
  if (random.one_in(10)) options.deadline = Nanos{random.span(3'000'000'000)};
  call_ = world_.client().send("http://a/" + std::to_string(number_), *this, std::move(options));
  ASSERT_TRUE(call_.is_open());
}

void Asking::act() {
  Random& random = world_.random;
  switch (random.below(9)) {
    case 0:
    case 1:
    case 2:
      return upload(random.below(random.one_in(4) ? 30'000 : 500));
    case 3:
      is_paused_ = true;
      return call_.pause();
    case 4:
    case 5:
      is_paused_ = false;
      return call_.resume();
    case 6:
      if (!random.one_in(6)) return;
      is_silent_ = true;
      return call_.cancel();
    case 7:
      if (random.one_in(6)) world_.let_go(*this);
      return;
    default:
      return world_.act_anywhere();
  }
}

void Asking::upload(std::size_t most) {
  if (!is_upload_) return;
  const std::string& body = world_.handlings.expected[number_].body;
  const std::string piece = body.substr(sent_, most);
  if (!piece.empty() && call_.write(piece)) sent_ += piece.size();
  if (sent_ == body.size() && !has_ended_) has_ended_ = call_.end();
}

void Asking::finish() {
  is_paused_ = false;
  call_.resume();
  if (call_.is_open()) upload(kMostBody);
}

void Asking::expect_over() const {
  EXPECT_TRUE(is_silent_ || is_closed_) << "call " << number_;
  EXPECT_FALSE(call_.is_open()) << "call " << number_;
}

// ---- callbacks

void Asking::note(const char* what) {
  EXPECT_TRUE(!is_silent_ && !is_closed_) << what << " of " << number_;
}

const ExpectedAnswer* Asking::answer() const {
  return attempt_ == 0 ? nullptr : &world_.handlings.expected[attempt_];
}

void Asking::on_upload() {
  note("on_upload");
  EXPECT_TRUE(is_upload_);
  EXPECT_FALSE(std::exchange(was_upload_told_, true));
  world_.on_call(*this);
}

void Asking::on_informational(http::Status status, const http::FieldsView&) {
  note("on_informational");
  EXPECT_EQ(status, http::Status::early_hints);
  EXPECT_EQ(stage_, Stage::asked);
  world_.on_call(*this);
}

void Asking::on_response(const http::Response& response) {
  note("on_response");
  EXPECT_EQ(stage_, Stage::asked);
  stage_ = Stage::answered;
  method_ = world_.handlings.expected[number_].method;
  is_sized_ = response.content_length().has_value();
  const std::string_view said = response["X-Number"];
  if (!said.empty()) {
    attempt_ = std::stoul(std::string(said));
    EXPECT_EQ(answer()->number, number_);
  }
  world_.on_call(*this);
}

void Asking::on_body(Bytes bytes) {
  note("on_body");
  EXPECT_EQ(stage_, Stage::answered);
  EXPECT_FALSE(has_body_ended_ || is_paused_);
  EXPECT_FALSE(bytes.empty());
  EXPECT_NE(method_, Method::head);
  received_ += text_of(bytes);
  if (answer() != nullptr) EXPECT_TRUE(answer()->answer.starts_with(received_)) << number_;
  world_.on_call(*this);
}

void Asking::on_body_end(const http::FieldsView&) {
  note("on_body_end");
  EXPECT_FALSE(std::exchange(has_body_ended_, true) || is_paused_);
  world_.on_call(*this);
}

void Asking::on_drained() {
  note("on_drained");
  EXPECT_TRUE(is_upload_);
  world_.on_call(*this);
}

void Asking::on_closed(std::error_code error) {
  note("on_closed");
  is_closed_ = true;
  EXPECT_FALSE(call_.is_open());
  if (!error) {
    EXPECT_EQ(stage_, Stage::answered) << number_;
    if (answer() != nullptr) {
      if (!is_sized_) EXPECT_TRUE(answer()->is_ended || method_ == Method::head) << number_;
      if (method_ != Method::head) EXPECT_EQ(received_, answer()->answer) << number_;
    }
  }
  stage_ = Stage::ended;
  world_.on_call(*this);
}

}  // namespace spate::testing
