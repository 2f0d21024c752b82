// HeadWriter: formats a header section into the caller's buffer.
//
// Call it in the order of the message: the first line, fields, end(). If the buffer is full, it
// continues to count: size() is then the size needed, and nothing beyond the buffer was written.
// Input that would be parsed differently (CR, LF or NUL in a value, an invalid name) makes the
// whole header section refused.
//
//   char room[512];
//   HeadWriter writer(room);
//   writer.status_line(Status::ok);
//   writer.prepared(date_and_server);
//   writer.framing(outgoing);
//   writer.fields(fields);
//   writer.end();
//   if (writer.is_whole()) send(writer.text());
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "http/codec/outgoing.h"
#include "spate/http/fields.h"
#include "spate/http/status.h"

namespace spate::http {

class HeadWriter {
 public:
  explicit HeadWriter(std::span<char> room)
      : begin_(room.data()), at_(room.data()), end_(room.data() + room.size()) {}

  // 100 ... 999. The version is HTTP/1.1, which servers send to all clients.
  void status_line(Status status);
  void request_line(std::string_view method, std::string_view target);

  // Adds trusted lines with their CR LF: Date and Server, made once a second.
  void prepared(std::string_view lines) { put(lines); }
  // Adds Content-Length or Transfer-Encoding, and Connection with the fields it names. `protocol`
  // is the value of Upgrade.
  void framing(const Outgoing& outgoing, std::string_view protocol = {});
  void field(FieldName name, std::string_view value);
  // Adds a program's fields. Refuses incomplete ones, and those of kFramingFields.
  void fields(const Fields& fields);
  void end() { put("\r\n"); }

  // True if nothing was refused, and everything fitted.
  bool is_whole() const { return !is_refused_ && missing_ == 0; }
  bool is_refused() const { return is_refused_; }
  std::size_t size() const { return written() + missing_; }
  // Valid if is_whole().
  std::string_view text() const { return {begin_, written()}; }

 private:
  std::size_t written() const { return static_cast<std::size_t>(at_ - begin_); }
  // Always inlined, so that literals are stored directly, and not copied by a call.
  [[gnu::always_inline]] void put(std::string_view text) {
    if (text.size() > static_cast<std::size_t>(end_ - at_)) {
      missing_ += text.size();
      end_ = at_;
    } else if (!text.empty()) {
      std::memcpy(at_, text.data(), text.size());
      at_ += text.size();
    }
  }
  void put_line(std::string_view name, std::string_view value);
  void put_length(std::uint64_t length);
  void put_number(std::uint64_t number);

  char* begin_;
  char* at_;
  char* end_;
  std::size_t missing_ = 0;  // Bytes that did not fit; nothing after them is written.
  bool is_refused_ = false;
};

}  // namespace spate::http
