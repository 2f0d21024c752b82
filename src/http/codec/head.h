// The head of an HTTP/1 message: its first line and its fields (RFC 9112 §2 to §5).
//
// A head is parsed when all of it is there, where it lies: what on_data() shows is passed in again,
// with more, until it is whole. Nothing is copied or allocated. There is no leniency: what is not
// of the grammar is refused, as any other reading of it may be another server's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "http/codec/refusal.h"
#include "spate/http/fields.h"
#include "spate/http/method.h"
#include "spate/http/status.h"
#include "spate/http/version.h"
#include "spate/net/bytes.h"

namespace spate::http {

inline constexpr std::size_t kMostHeadFields = 100;

// Beyond these: 431 (Request Header Fields Too Large), and 414 (URI Too Long) for the line.
struct HeadLimits {
  std::size_t head = 16 * 1024;          // Bytes of the head; at most 65,535.
  std::size_t line = 8 * 1024;           // Of its first line, without CR LF.
  std::size_t fields = kMostHeadFields;  // At most as many.
};

// What a head says. Views into the bytes that were parsed.
struct RequestView {
  Method method = Method::other;
  Version version = Version::http_1_1;
  std::string_view method_name = {};
  std::string_view target = {};  // As it was sent: visible characters of ASCII.
  FieldsView fields = {};
  // Those that are there more than once.
  std::uint64_t repeated = 0;
};

struct ResponseView {
  Version version = Version::http_1_1;
  Status status = Status::ok;    // 100 ... 999
  std::string_view reason = {};  // May be empty.
  FieldsView fields = {};
  std::uint64_t repeated = 0;
};

struct TrailerView {
  FieldsView fields = {};
  std::uint64_t repeated = 0;
};

// With room for the entries, to which its fields refer: it stays where it is. About 1 KiB.
template <class View>
struct Head : View {
  Head() {}
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  const View& view() const { return *this; }

  std::size_t size = 0;  // Bytes, to the end of the empty line behind the fields.
  std::array<FieldEntry, kMostHeadFields> entries;
};
using RequestHead = Head<RequestView>;
using ResponseHead = Head<ResponseView>;
using TrailerHead = Head<TrailerView>;

struct Parsed {
  enum class State : std::uint8_t { unfinished, whole, broken };

  State state;
  std::size_t looked_at;  // Unfinished: to be passed in the next time.
  Refusal refusal;        // Broken.

  static Parsed unfinished(std::size_t looked_at) { return {State::unfinished, looked_at, {}}; }
  static Parsed whole() { return {State::whole, 0, {}}; }
  static Parsed broken(Refusal refusal) { return {State::broken, 0, refusal}; }
};

// `bytes` begin with the head; what follows it is not looked at. `looked_at` is 0, or what the last
// call with fewer of the same bytes has answered. `head` is what it says when it is whole; else it
// is in no state to be read.
Parsed parse_request(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                     RequestHead& head);
// All refusals are 502.
Parsed parse_response(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                      ResponseHead& head);
// The fields behind the last chunk, to the end of the empty line.
Parsed parse_trailers(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                      TrailerHead& head);

// By tables only: what the others answer, for tests.
Parsed parse_request_by_table(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                              RequestHead& head);
Parsed parse_response_by_table(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                               ResponseHead& head);

// Owns the bytes of a head that outlives them, in one block.
template <class View>
class HeadCopy {
 public:
  HeadCopy() = default;
  HeadCopy(HeadCopy&& other) noexcept { swap(other); }
  HeadCopy& operator=(HeadCopy&& other) noexcept {
    swap(other);
    other.clear();
    return *this;
  }
  ~HeadCopy() { clear(); }

  // False when memory runs out; then nothing is changed. `head` is one of the bytes at `text`.
  bool copy(const char* text, const Head<View>& head);
  bool empty() const { return block_ == nullptr; }
  void clear();
  const View& view() const { return view_; }

 private:
  void swap(HeadCopy& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(view_, other.view_);
  }

  void* block_ = nullptr;
  View view_;
};
extern template class HeadCopy<RequestView>;
extern template class HeadCopy<ResponseView>;

}  // namespace spate::http
