// TLS over a hostile transport: two ends whose transport splits, changes, repeats, delays or adds
// bytes, or hangs up; or one end, whose peer sends the fuzzer's bytes. Whatever happens to the
// ciphertext, the received text is a prefix of the sent text, and an end without an error comes
// only after all of it.
#include "spate/net/tls.h"

#include <memory>
#include <string>

#include "input.h"
#include "spate/loop.h"
#include "tls/testing/certificates.h"

namespace spate::fuzz {
namespace {

// One side of TLS, on top of one end of a pair in memory.
class Side final : public StreamHandler {
 public:
  Side(Input& input, std::size_t size) : input_(input), sent_(size, ' ') {
    for (std::size_t i = 0; i < size; ++i) sent_[i] = static_cast<char>('a' + i % 23);
  }
  void meet(Side& peer) { peer_ = &peer; }
  OnSecured on_secured() {
    return [this](TlsResult<Stream> secured) {
      is_told_ = true;
      check(secured || (secured.error().code && !secured.error().text.empty()));
      if (!secured) return;
      check(tls_info(*secured).has_value());
      stream_ = std::move(*secured);
      stream_.start(*this);
      if (input_.flag())
        stream_.set_rate_limits(
            {.read = {.bytes_per_second = 1'000'000'000, .burst = 1 + input_.below(60'000)},
             .write = {}});
      check(stream_.write(sent_));
      stream_.end();
    };
  }
  bool is_done() const { return is_told_ && !stream_.is_open(); }

  std::size_t on_data(Bytes bytes) override {
    check(peer_ != nullptr && peer_->sent_.compare(received_, bytes.size(), text_of(bytes)) == 0);
    const std::size_t used = input_.flag() ? input_.below(bytes.size() + 1) : bytes.size();
    received_ += used;
    return used;
  }
  void on_end() override {
    check(received_ + stream_.unread().size() == peer_->sent_.size());
    ended_ = true;
  }
  void on_closed(std::error_code error) override {
    check(ended_ || error);
    check(!closed_);
    closed_ = true;
  }

 private:
  Input& input_;
  Side* peer_ = nullptr;
  std::string sent_;
  std::size_t received_ = 0;
  Stream stream_;
  bool is_told_ = false;
  bool ended_ = false;
  bool closed_ = false;
};

// Carries ciphertext one way.
class Carrier final : public StreamHandler {
 public:
  Carrier(Input& input, Stream& from, Stream& to) : input_(input), from_(from), to_(to) {
    from_.set_half_open(true);
    from_.start(*this);
  }

  std::size_t on_data(Bytes bytes) override {
    const std::uint8_t what = input_.byte();
    if (what < 200) {
      to_.write(bytes);
      return bytes.size();
    }
    std::string text(text_of(bytes.first(1 + input_.below(bytes.size()))));
    const std::size_t used = text.size();
    if (what < 225) {  // A part of it.
      to_.write(text);
    } else if (what < 235) {
      text[input_.below(text.size())] ^= static_cast<char>(1 << (what & 7));
      to_.write(text);
    } else if (what < 240) {
      to_.write(text + text);
    } else if (what < 245) {
      to_.write(input_.text(64));
    } else if (what < 250) {
      to_.end();
    } else if (what < 253) {
      to_.abort();
    }  // Otherwise it is lost.
    return used;
  }
  void on_end() override { to_.end(); }
  void on_closed(std::error_code) override {}

 private:
  Input& input_;
  Stream& from_;
  Stream& to_;
};

void talk(Loop& loop, Input& input) {
  auto near = std::move(*Stream::memory_pair(loop));
  auto far = std::move(*Stream::memory_pair(loop));
  const Carrier forth(input, near.second, far.first);
  const Carrier back(input, far.first, near.second);
  Side client(input, input.below(150'000));
  Side server(input, input.below(150'000));
  client.meet(server);
  server.meet(client);
  const Connecting one = start_tls(std::move(near.first), testing::test_client_context(),
                                   "localhost", client.on_secured());
  const Connecting two =
      accept_tls(std::move(far.second), testing::test_server_context(), server.on_secured());
  for (int i = 0; i < 400 && !(client.is_done() && server.is_done()); ++i) loop.run(Run::no_wait);
}

// The fuzzer's bytes are the only input.
void listen(Loop& loop, Input& input) {
  auto pair = std::move(*Stream::memory_pair(loop));
  Side side(input, 100);
  const bool is_server = input.flag();
  const Connecting attempt =
      is_server
          ? accept_tls(std::move(pair.first), testing::test_server_context(), side.on_secured())
          : start_tls(std::move(pair.first), testing::test_client_context(), "localhost",
                      side.on_secured());
  while (!input.empty()) {
    pair.second.write(input.text(300));
    for (int i = 0; i < 3; ++i) loop.run(Run::no_wait);
  }
  pair.second.end();
  for (int i = 0; i < 10; ++i) loop.run(Run::no_wait);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  fuzz::Input input(data, size);
  const auto loop = std::move(*Loop::create());
  if (input.flag()) {
    fuzz::talk(*loop, input);
  } else {
    fuzz::listen(*loop, input);
  }
  return 0;
}
