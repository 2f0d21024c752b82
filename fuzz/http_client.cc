// An HTTP client, and a server that says any bytes in any pieces: each call has one outcome, which
// does not depend on how the bytes arrived.
#include "spate/http/client.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input.h"
#include "spate/loop.h"

namespace spate::fuzz {
namespace {

Loop& loop() {
  static const std::unique_ptr<Loop> made = must(Loop::create());
  return *made;
}

// Sends the script, a step for each request, then ends.
class Speaker final : public StreamHandler {
 public:
  Speaker(Stream stream, std::string_view script, std::size_t step)
      : stream_(std::move(stream)), script_(script), step_(step) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }

  std::size_t on_data(Bytes bytes) override {
    is_asked_ = true;
    return bytes.size();
  }
  void on_closed(std::error_code) override {}

  // Returns false at the end of the script.
  bool speak() {
    if (!is_asked_ || is_done_) return false;
    const std::string_view piece = script_.substr(0, step_);
    script_.remove_prefix(piece.size());
    stream_.write(piece);
    is_done_ = script_.empty();
    if (is_done_) stream_.end();
    return true;
  }

 private:
  Stream stream_;
  std::string_view script_;
  const std::size_t step_;
  bool is_asked_ = false;
  bool is_done_ = false;
};

struct Outcome {
  int status = 0;
  std::string body;
  std::size_t fields = 0;
  std::error_code error;

  bool operator==(const Outcome&) const = default;
};

// The request that a script answers.
struct Question {
  http::Method method = http::Method::get;
  bool decompresses = false;
  unsigned redirects = 0;
  std::uint64_t most = 0;
};

Outcome converse(const Question& question, std::string_view script, std::size_t step) {
  std::vector<std::unique_ptr<Speaker>> speakers;
  http::Client client = must(http::Client::create(
      loop(), {.max_head = 2048, .open = [&](std::string_view, std::uint16_t) -> Result<Stream> {
                 auto [mine, theirs] = must(Stream::memory_pair(loop()));
                 speakers.push_back(std::make_unique<Speaker>(std::move(theirs), script, step));
                 return std::move(mine);
               }}));
  std::optional<Outcome> outcome;
  const http::Call call =
      client.fetch("http://a/",
                   [&outcome](Result<http::Response> response) {
                     check(!outcome);
                     outcome.emplace();
                     if (!response) return static_cast<void>(outcome->error = response.error());
                     outcome->status = http::code_of(response->status());
                     outcome->body = response->text();
                     outcome->fields = response->fields().size();
                   },
                   {.method = question.method,
                    .max_redirects = question.redirects,
                    .decompress = question.decompresses,
                    .max_body = question.most});
  const std::size_t turns = 50 + 4 * (script.size() / step + 1) * (question.redirects + 1);
  for (std::size_t i = 0; i < turns && !outcome; ++i) {
    loop().run(Run::no_wait);
    for (std::size_t each = 0; each < speakers.size(); ++each) speakers[each]->speak();
  }
  check(outcome.has_value());
  if (question.most != 0) check(outcome->body.size() <= question.most);
  return *outcome;
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  fuzz::Input input(data, std::min<std::size_t>(size, 4096));
  fuzz::Question question;
  if (input.flag()) question.method = http::Method::head;
  question.decompresses = input.flag();
  question.redirects = static_cast<unsigned>(input.below(3));
  question.most = input.below(2000);
  const std::size_t step = 1 + input.below(64);
  const fuzz::Outcome whole = fuzz::converse(question, input.rest(), 1 << 20);
  const fuzz::Outcome split = fuzz::converse(question, input.rest(), step);
  // The bytes after a redirect may be dropped, or be the next response.
  if (question.redirects == 0) fuzz::check(whole == split);
  return 0;
}
