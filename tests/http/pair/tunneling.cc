#include "http/pair/tunneling.h"

#include <utility>

#include "http/pair/pair_world.h"

namespace spate::testing {

void Tunneling::ask() {
  call_ = world_.client().send("http://a/tunnel/" + std::to_string(number_), *this,
                               {.upgrade = "talk"});
  ASSERT_TRUE(call_.is_open());
}

void Tunneling::open(Stream stream) {
  stream_ = std::move(stream);
  stream_.set_half_open(world_.random.one_in(2));
  stream_.start(*this);
}

void Tunneling::act() {
  Random& random = world_.random;
  if (!is_open()) return;
  switch (random.below(13)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return tunnel();
    case 4:
      is_paused_ = stream_.is_open();
      return stream_.pause();
    case 5:
    case 6:
      is_paused_ = false;
      return stream_.resume();
    case 7:
      if (random.one_in(4)) stream_.end();
      return;
    case 8:
      if (random.one_in(8)) stream_.close();
      return;
    case 9:
      if (!random.one_in(12) || !stream_.is_open()) return;
      is_silent_ = true;
      return stream_.abort();
    case 10:
      if (random.one_in(12)) world_.let_go(*this);
      return;
    case 11:
      if (!random.one_in(12) || !call_.is_open()) return;
      is_silent_ = true;
      return call_.cancel();
    default:
      return world_.act_anywhere();
  }
}

void Tunneling::tunnel() {
  Random& random = world_.random;
  const std::string text = letters(random.below(26), random.below(random.one_in(8) ? 90'000 : 200));
  if (stream_.is_open() && stream_.queued() < 400'000 && stream_.write(text))
    world_.bytes_of(*this) += text;
}

void Tunneling::finish() {
  is_paused_ = false;
  stream_.resume();
  stream_.end();
}

void Tunneling::expect_over() const {
  EXPECT_TRUE(is_silent_ || is_closed_) << "tunnel " << number_ << is_client_;
}

// ---- callbacks

void Tunneling::note(const char* what) {
  EXPECT_TRUE(!is_silent_ && !is_closed_) << what << " of " << number_ << is_client_;
}

void Tunneling::on_response(const http::Response&) {
  note("on_response");
  world_.on_call(*this);
}

void Tunneling::on_body(Bytes) {
  note("on_body");
  world_.on_call(*this);
}

void Tunneling::on_upgraded(const http::Response&, Stream stream) {
  note("on_upgraded");
  EXPECT_TRUE(is_client_);
  open(std::move(stream));
  world_.on_call(*this);
}

std::size_t Tunneling::on_data(Bytes bytes) {
  note("on_data");
  EXPECT_FALSE(is_paused_ || has_other_ended_);
  received_ += text_of(bytes);
  if (number_ != 0)
    EXPECT_TRUE(world_.bytes_to(*this).starts_with(received_)) << number_ << is_client_;
  const std::size_t size = bytes.size();
  world_.on_call(*this);
  return size;
}

void Tunneling::on_end() {
  note("on_end");
  EXPECT_FALSE(std::exchange(has_other_ended_, true) || is_paused_);
  const bool may_be_less = number_ == 0 || !world_.knows_resets();
  if (!may_be_less)
    EXPECT_EQ(received_.size(), world_.bytes_to(*this).size()) << number_ << is_client_;
  world_.on_call(*this);
}

void Tunneling::on_drained() {
  note("on_drained");
  world_.on_call(*this);
}

void Tunneling::on_closed(std::error_code) {
  note("on_closed");
  is_closed_ = true;
  EXPECT_FALSE(stream_.is_open() || call_.is_open());
  world_.on_call(*this);
}

}  // namespace spate::testing
