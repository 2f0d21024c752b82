// Messages of the domain name system, parsed and written, for the client and for the server.
//
// Semantics: RFC 1035, section 4; RFC 2181. Probed: which names are compressed, and how.
//
// Nothing here uses sockets, or allocates. A reader takes any bytes: a pointer of a compressed name
// has to point before all that was read of the name, so that each name ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spate::libevent::dns {

inline constexpr std::size_t kHeaderSize = 12;
inline constexpr std::size_t kLabelMost = 63;
inline constexpr std::size_t kNameMost = 253;  // As text, without a dot at its end.
inline constexpr std::size_t kWireNameMost = 255;

// As text, with its end.
using NameText = char[kNameMost + 1];

inline constexpr unsigned kIsResponse = 0x8000;
inline constexpr unsigned kIsTruncated = 0x0200;
inline constexpr unsigned kRecursionDesired = 0x0100;
inline constexpr unsigned kCheckingDisabled = 0x0010;
inline constexpr unsigned kResultCode = 0x000f;

struct Header {
  std::uint16_t id;
  std::uint16_t flags;
  std::uint16_t questions;
  std::uint16_t answers;
  std::uint16_t authorities;
  std::uint16_t additional;
};

struct Question {
  NameText name;
  std::uint16_t type;
  std::uint16_t dns_class;
};

// A record without its name.
struct Record {
  std::uint16_t type;
  std::uint16_t dns_class;
  std::uint32_t ttl;
  std::size_t begin;  // The range of its data in the message,
  std::size_t size;
};

// Each function returns false if the bytes end too early or are malformed; nothing more can be read
// then.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> message) : message_(message) {}

  [[nodiscard]] bool header(Header& header);
  // Rejects labels with dots or zeros in them: as text they would be another name.
  [[nodiscard]] bool name(NameText& text);
  [[nodiscard]] bool question(Question& question);
  // Continues after the record's data.
  [[nodiscard]] bool record(Record& record);

  // Returns a reader of a record's data, which may follow pointers to earlier bytes.
  std::span<const std::uint8_t> data_of(const Record& record) const {
    return message_.subspan(record.begin, record.size);
  }
  Reader reader_of(const Record& record) const;

  [[nodiscard]] bool number16(std::uint16_t& number);
  [[nodiscard]] bool number32(std::uint32_t& number);
  [[nodiscard]] bool skip_name();

 private:
  class Labels;

  explicit Reader(std::span<const std::uint8_t> message, std::size_t next)
      : message_(message), next_(next) {}

  std::size_t left() const { return message_.size() - next_; }

  std::span<const std::uint8_t> message_;
  std::size_t next_ = 0;
};

// Writes into memory of the caller. Data that does not fit is not written at all.
class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> room) : room_(room) {}

  std::size_t size() const { return size_; }

  // Writes the header at the front, whatever was written after it since.
  void header(const Header& header);
  // False if it does not fit, or is no name: an empty label within it, one that is too long. Uses a
  // pointer for the part in common with names that were written before. Their text must stay valid.
  [[nodiscard]] bool name(std::string_view text);
  [[nodiscard]] bool question(std::string_view text, std::uint16_t type, std::uint16_t dns_class);

  // Writes a record of bytes, or of a name.
  [[nodiscard]] bool record(std::string_view owner, std::uint16_t type, std::uint16_t dns_class,
              std::uint32_t ttl, std::span<const std::uint8_t> data);
  bool name_record(std::string_view owner, std::uint16_t type, std::uint16_t dns_class,
                   std::uint32_t ttl, std::string_view name);

 private:
  // A name that was written, or the end of one.
  struct Known {
    std::string_view text;
    std::uint16_t at;
  };
  struct Place {
    std::size_t size;
    std::size_t known;
  };
  static constexpr std::size_t kKnownMost = 128;

  bool number16(std::size_t number);
  [[nodiscard]] bool number32(std::uint32_t number);
  [[nodiscard]] bool bytes(const void* bytes, std::size_t size);
  [[nodiscard]] bool labels(std::string_view text);
  const Known* find(std::string_view text) const;
  bool record_head(std::string_view owner, std::uint16_t type, std::uint16_t dns_class,
                   std::uint32_t ttl);
  Place place() const { return {size_, known_count_}; }
  // Removes the bytes written since then, and returns false.
  bool give_up(const Place& since);

  std::span<std::uint8_t> room_;
  std::size_t size_ = 0;
  std::size_t known_count_ = 0;
  Known known_[kKnownMost];
};

}  // namespace spate::libevent::dns
