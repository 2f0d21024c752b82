// Stream: two ends in memory, a script of their operations, inside their callbacks too, and a count
// of the bytes that each direction must deliver.
#include "spate/net/stream.h"

#include <memory>
#include <string>

#include "input.h"
#include "spate/loop.h"

namespace spate::fuzz {
namespace {

// The most bytes that one end sends: more only takes longer.
constexpr std::size_t kMax = 500'000;

// The bytes that either end sends, from its first byte on.
const std::string& all_bytes() {
  static const std::string bytes = [] {
    std::string made(2 * kMax, ' ');
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>(i % 251);
    return made;
  }();
  return bytes;
}

// One end, and the state that the test expects.
class End final : public StreamHandler {
 public:
  End(Input& input, Stream stream) : input_(input), stream_(std::move(stream)) {
    stream_.start(*this);
  }

  void meet(End& peer) { peer_ = &peer; }

  std::size_t on_data(Bytes bytes) override {
    begin_callback();
    check(!bytes.empty() && !ended_ && !is_paused_);
    check(all_bytes().compare(used_, bytes.size(), text_of(bytes)) == 0);
    check(used_ + bytes.size() <= peer_->accepted_ || peer_->is_cut_short_);
    const std::size_t used = input_.flag() ? input_.below(bytes.size() + 1) : bytes.size();
    used_ += used;
    left_ = bytes.size() - used;
    end_callback();
    return used;
  }
  void on_end() override {
    begin_callback();
    check(!ended_);
    ended_ = true;
    if (!is_discarding_ && !peer_->is_cut_short_) check(used_ + left_ == peer_->accepted_);
    end_callback();
  }
  void on_drained() override {
    begin_callback();
    end_callback();
  }
  void on_closed(std::error_code error) override {
    begin_callback();
    check(!closed_ && !stream_.is_open() && !stream_.is_writable());
    closed_ = true;
    // Only the peer or a full queue can have broken it.
    if (error) check(is_cut_short_ || peer_->is_cut_short_ || peer_->is_discarding_ || is_limited_);
    if (error) is_cut_short_ = true;
    end_callback();
  }

  // One choice of the script.
  void act() {
    if (is_gone_) return;
    switch (input_.below(12)) {
      case 0:
      case 1:
      case 2:
        return write(input_.below(input_.flag() ? 200'000 : 50));
      case 3:
        return write_buffer(input_.below(30'000));
      case 4:
        is_ending_ = true;
        return stream_.end();
      case 5:
        is_discarding_ = is_ending_ = true;
        return stream_.close();
      case 6:
        is_cut_short_ = is_gone_ = true;
        return stream_.abort();
      case 7:
        is_paused_ = stream_.is_open();
        return stream_.pause();
      case 8:
        is_paused_ = false;
        return stream_.resume();
      case 9:
        return stream_.set_half_open(input_.flag());
      case 10:
        return limit();
      default:
        return destroy();
    }
  }

  // Lifts every pause, so that all pending bytes must arrive.
  void let_go() {
    if (is_gone_) return;
    is_paused_ = false;
    stream_.set_half_open(false);
    stream_.resume();
    stream_.end();
  }
  void check_end() const {
    const bool is_undisturbed = !is_gone_ && !peer_->is_gone_ && !is_cut_short_ &&
                                !peer_->is_cut_short_ && !is_discarding_ && !peer_->is_discarding_;
    if (is_undisturbed) check(closed_ && ended_ && used_ + left_ == peer_->accepted_);
  }

 private:
  void begin_callback() {
    check(!is_gone_ && !in_callback_ && !closed_);
    in_callback_ = true;
  }
  void end_callback() {
    if (input_.below(4) == 0) act();
    if (input_.below(8) == 0) peer_->act();
    in_callback_ = false;
  }

  std::string_view next_bytes(std::size_t size) const {
    return std::string_view(all_bytes()).substr(accepted_, size);
  }
  void write(std::size_t size) {
    if (accepted_ > kMax) return;
    const bool may = stream_.is_writable();
    note(size, stream_.write(next_bytes(size)), may);
  }
  void write_buffer(std::size_t size) {
    if (accepted_ > kMax) return;
    Buffer buffer;
    check(buffer.append(next_bytes(size)));
    const bool may = stream_.is_writable();
    const bool done = stream_.write(std::move(buffer));
    check(done || buffer.size() == size);
    note(size, done, may);
  }
  void note(std::size_t size, bool done, bool might) {
    check(might ? done || is_limited_ : !done);
    check(!done || !is_ending_);
    if (done) accepted_ += size;
    // A write that is refused half way may have let some through, and breaks the connection.
    if (!done && might && !drops_) is_cut_short_ = true;
  }
  void limit() {
    drops_ = input_.flag();
    is_limited_ = true;
    const std::size_t low = input_.below(1000);
    const std::size_t high = low + input_.below(100'000);
    check(stream_.set_limits({.low = low,
                              .high = high,
                              .max = high + input_.below(500'000),
                              .when_full = drops_ ? WhenFull::drop : WhenFull::close}));
  }
  void destroy() {
    is_gone_ = is_discarding_ = true;
    const Stream gone = std::move(stream_);
  }

  Input& input_;
  Stream stream_;
  End* peer_ = nullptr;
  std::size_t accepted_ = 0;  // Bytes that write() has taken.
  std::size_t used_ = 0;
  std::size_t left_ = 0;  // Bytes of the last on_data() that were not used.
  bool in_callback_ = false;
  bool is_paused_ = false;
  bool is_ending_ = false;
  bool is_discarding_ = false;  // Discards the peer's data.
  bool is_limited_ = false;
  bool drops_ = false;
  bool is_cut_short_ = false;  // Some accepted bytes do not arrive.
  bool is_gone_ = false;       // No callback may come.
  bool ended_ = false;
  bool closed_ = false;
};

void run(Input input) {
  std::unique_ptr<Loop> loop = std::move(*Loop::create({.backend = "poll"}));
  const auto turn = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) check(!loop->run(Run::no_wait));
  };
  auto pair = std::move(*Stream::memory_pair(*loop));
  End left(input, std::move(pair.first));
  End right(input, std::move(pair.second));
  left.meet(right);
  right.meet(left);
  const bool loop_goes_first = input.flag();
  for (int i = 0; i < 200 && !input.empty(); ++i) {
    if (input.flag()) {
      (input.flag() ? left : right).act();
    } else {
      turn(1 + input.below(3));
    }
  }
  if (loop_goes_first) return loop.reset();
  left.let_go();
  right.let_go();
  turn(300);
  left.check_end();
  right.check_end();
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::run(spate::fuzz::Input(data, size));
  return 0;
}
