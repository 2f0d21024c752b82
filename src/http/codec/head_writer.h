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
//   writer.date(cached_date);
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
  explicit HeadWriter(std::span<char> room) : room_(room) {}

  // 100 ... 999; of HTTP/1.1, which servers say to all clients.
  void status_line(Status status);
  void request_line(std::string_view method, std::string_view target);

  // "Date: ", and CR LF. `text` is trusted.
  void date(std::string_view text);
  // Content-Length or Transfer-Encoding, and Connection. `protocol` is what is upgraded to.
  void framing(const Outgoing& outgoing, std::string_view protocol = {});
  void field(FieldName name, std::string_view value);
  // Those of a program: refused if one of kFramingFields is among them.
  void fields(const Fields& fields);
  // What a parser has read: without kFramingFields, which are of the connection it came from.
  void forwarded(FieldsView fields);
  void end() { put("\r\n"); }

  // Nothing was refused, and all of it has found room.
  bool is_whole() const { return !is_refused_ && size_ <= room_.size(); }
  bool is_refused() const { return is_refused_; }
  std::size_t size() const { return size_; }
  // If it is whole.
  std::string_view text() const { return {room_.data(), size_}; }

 private:
  void put(std::string_view text) {
    if (text.size() <= room_.size() && size_ <= room_.size() - text.size() && !text.empty())
      std::memcpy(room_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void put_line(std::string_view name, std::string_view value);
  void put_number(std::uint64_t number);

  std::span<char> room_;
  std::size_t size_ = 0;
  bool is_refused_ = false;
};

}  // namespace spate::http
