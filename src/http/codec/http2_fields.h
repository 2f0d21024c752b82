// Http2Fields: the fields of a header section or of trailers in the format of a session. Has views
// into the fields.
//
// An invalid value makes the whole header section refused, as in HeadWriter.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "http/codec/characters.h"
#include "http/codec/http2_session.h"
#include "spate/http/fields.h"
#include "spate/http/status.h"

namespace spate::http {

class Http2Fields {
 public:
  Http2Fields() = default;
  Http2Fields(const Http2Fields&) = delete;
  Http2Fields& operator=(const Http2Fields&) = delete;

  // To be called first. `count` is the number of further fields. False when memory runs out.
  bool reserve(std::size_t count) {
    if (count + kOwn <= near_.size()) return true;
    far_.reset(new (std::nothrow) Http2Field[count + kOwn]);
    return far_ != nullptr;
  }
  // Adds a field; at most kOwn in this way.
  void add(std::string_view name, std::string_view value) {
    is_refused_ |= !is_field_value(value);
    data()[size_++] = {name, value};
  }
  void add_status(Status status) { add(":status", write(code_of(status), status_)); }
  void add_length(std::uint64_t length) { add("content-length", write(length, length_)); }

  // Adds fields that were validated when they were set.
  void add_all(const FieldsView& fields) {
    for (const Field& field : fields) data()[size_++] = {field.name, field.value};
  }
  bool is_refused() const { return is_refused_; }
  std::span<const Http2Field> view() const {
    return {far_ == nullptr ? near_.data() : far_.get(), size_};
  }

 private:
  static constexpr std::size_t kOwn = 5;

  Http2Field* data() { return far_ == nullptr ? near_.data() : far_.get(); }
  template <class Number, std::size_t kSize>
  static std::string_view write(Number number, std::array<char, kSize>& room) {
    const auto end = std::to_chars(room.data(), room.data() + room.size(), number).ptr;
    return {room.data(), end};
  }

  std::size_t size_ = 0;
  bool is_refused_ = false;
  std::array<char, 4> status_;
  std::array<char, 20> length_;
  std::array<Http2Field, 20> near_;
  std::unique_ptr<Http2Field[]> far_;
};

}  // namespace spate::http
