// HeadWriter: writes a head into room that the caller has.
//
// In the order of the message: a first line, fields, end(). Goes on counting when the room is full:
// size() is then what is needed, and nothing beyond the room was touched. What could not be read as
// it was meant (a CR, LF or NUL in a value, a name that is no token) is refused, and the head with
// it.
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

  // 100 ... 999; of HTTP/1.1, which servers say to all clients.
  void status_line(Status status);
  void request_line(std::string_view method, std::string_view target);

  // Lines with their CR LF, which are trusted: Date and Server, made once a second.
  void prepared(std::string_view lines) { put(lines); }
  // Content-Length or Transfer-Encoding, and Connection with what it names. `protocol` is what is
  // upgraded to.
  void framing(const Outgoing& outgoing, std::string_view protocol = {});
  void field(FieldName name, std::string_view value);
  // Those of a program: refused if one of kFramingFields is among them.
  void fields(const Fields& fields);
  void end() { put("\r\n"); }

  // Nothing was refused, and all of it has found room.
  bool is_whole() const { return !is_refused_ && missing_ == 0; }
  bool is_refused() const { return is_refused_; }
  std::size_t size() const { return written() + missing_; }
  // If it is whole.
  std::string_view text() const { return {begin_, written()}; }

 private:
  std::size_t written() const { return static_cast<std::size_t>(at_ - begin_); }
  // Inlined, so that literals are stored and not copied by a call.
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
  std::size_t missing_ = 0;  // What has found no room; nothing behind it is written.
  bool is_refused_ = false;
};

}  // namespace spate::http
