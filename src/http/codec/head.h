// The header section of an HTTP/1 message: its first line and its fields (RFC 9112 §2 to §5).
//
// It is parsed in place when it is complete: bytes are passed in again, with more, until then.
// Nothing is copied or allocated. Invalid syntax is always refused, because another server might
// parse it differently.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

// Exceeding them gives 431 (Request Header Fields Too Large), and 414 (URI Too Long) for the line.
struct HeadLimits {
  std::size_t head = 16 * 1024;          // Bytes of the header section; at most 65,535.
  std::size_t line = 8 * 1024;           // Bytes of its first line, without CR LF.
  std::size_t fields = kMostHeadFields;  // At most kMostHeadFields.

  // Returns how many fields fit into the bytes: the shortest line is "a:" with CR LF.
  std::size_t most_fields() const { return std::min(fields, head / 4); }
};

// A parsed header section. Has views into the parsed bytes.
struct RequestView {
  Method method = Method::other;
  Version version = Version::http_1_1;
  std::string_view method_name = {};
  std::string_view target = {};  // As it was sent: visible ASCII characters.
  FieldsView fields = {};
  // The fields that occur more than once.
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

// The entries of a header section.
template <class View>
class HeadEntries {
 public:
  static constexpr std::size_t size() { return kMostHeadFields; }
  FieldEntry* data() { return near_.data(); }
  const FieldEntry* data() const { return near_.data(); }
  operator std::span<FieldEntry>() { return near_; }
  operator std::span<const FieldEntry>() const { return near_; }

 private:
  std::array<FieldEntry, kMostHeadFields> near_;
};

// A response may have more fields: only its bytes are limited.
template <>
class HeadEntries<ResponseView> {
 public:
  std::size_t size() const { return far_ == nullptr ? near_.size() : far_size_; }
  FieldEntry* data() { return far_ == nullptr ? near_.data() : far_.get(); }
  const FieldEntry* data() const { return far_ == nullptr ? near_.data() : far_.get(); }
  operator std::span<FieldEntry>() { return {data(), size()}; }
  operator std::span<const FieldEntry>() const { return {data(), size()}; }
  // Makes room for `count`, and keeps the entries. False if there is that much already, or when
  // memory runs out.
  bool grow(std::size_t count);

 private:
  std::array<FieldEntry, kMostHeadFields> near_;
  std::unique_ptr<FieldEntry[]> far_;
  std::size_t far_size_ = 0;
};

// A header section with the entries that its fields refer to, so it cannot move. About 1 KiB.
template <class View>
struct Head : View {
  Head() {}
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  const View& view() const { return *this; }

  std::size_t size = 0;  // Bytes, including the empty line after the fields.
  HeadEntries<View> entries;
};
using RequestHead = Head<RequestView>;
using ResponseHead = Head<ResponseView>;
using TrailerHead = Head<TrailerView>;

struct Parsed {
  enum class State : std::uint8_t { unfinished, whole, broken };

  State state;
  std::size_t looked_at;  // With `unfinished`: to be passed in the next time.
  Refusal refusal;        // With `broken`.

  static Parsed unfinished(std::size_t looked_at) { return {State::unfinished, looked_at, {}}; }
  static Parsed whole() { return {State::whole, 0, {}}; }
  static Parsed broken(Refusal refusal) { return {State::broken, 0, refusal}; }
};

// Parses a request. `bytes` begin with it; following bytes are ignored. `looked_at` is 0, or the
// value returned by the last call for a prefix of these bytes, so that they are not scanned again.
// `head` is valid only if the result is `whole`.
Parsed parse_request(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                     RequestHead& head);
// As above for a response. The status of all errors is 502.
Parsed parse_response(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                      ResponseHead& head);
// Parses the fields after the last chunk, including the empty line.
Parsed parse_trailers(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                      TrailerHead& head);

// As above without vectors; for tests.
Parsed parse_request_by_table(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                              RequestHead& head);
Parsed parse_response_by_table(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                               ResponseHead& head);

// Owns a copy of a header section, in one block, for use after its bytes become invalid.
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

  // Copies `head`, which was parsed from the bytes at `text`. False, with nothing changed, when
  // memory runs out.
  bool copy(const char* text, const Head<View>& head);
  bool empty() const { return block_ == nullptr; }
  void clear() {
    if (block_ != nullptr) release();
  }
  const View& view() const { return view_; }

 private:
  void swap(HeadCopy& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(view_, other.view_);
  }

  void release();

  void* block_ = nullptr;
  View view_;
};
extern template class HeadCopy<RequestView>;
extern template class HeadCopy<ResponseView>;

}  // namespace spate::http
