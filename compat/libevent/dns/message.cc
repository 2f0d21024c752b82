#include "compat/libevent/dns/message.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spate::libevent::dns {
namespace {

constexpr std::size_t kPointer = 0xc0;
constexpr std::size_t kOffsetMost = 0x3fff;
constexpr std::size_t kNumbersOfQuestion = 4;

std::string_view without_last_dot(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

// Removes the first label. Returns false if it is invalid.
bool take_label(std::string_view& text, std::string_view& label) {
  const std::size_t dot = text.find('.');
  label = text.substr(0, dot);
  if (label.empty() || label.size() > kLabelMost) return false;
  text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  return dot == std::string_view::npos || !text.empty();
}

}  // namespace

// ---- reading

// Iterates over the labels of one name, wherever they are.
class Reader::Labels {
 public:
  Labels(std::span<const std::uint8_t> message, std::size_t first)
      : message_(message), next_(first), lowest_(first) {}

  // Returns false at the end of the name, or if it is malformed: is_good() distinguishes these.
  bool next(std::span<const std::uint8_t>& label) {
    while (next_ < message_.size()) {
      const std::size_t size = message_[next_];
      if (size >= kPointer) {
        if (!follow()) return fail();
        continue;
      }
      if (size > kLabelMost || size >= message_.size() - next_) return fail();
      label = message_.subspan(next_ + 1, size);
      length_ += size + 1;
      next_ += size + 1;
      if (!has_jumped_) end_ = next_;
      if (size == 0) return false;
      if (length_ >= kWireNameMost) return fail();
      return true;
    }
    return fail();
  }

  bool is_good() const { return is_good_; }
  // The position after the name.
  std::size_t end() const { return end_; }

 private:
  bool fail() { return is_good_ = false; }

  bool follow() {
    if (message_.size() - next_ < 2) return false;
    const std::size_t target = (message_[next_] & ~kPointer) << 8 | message_[next_ + 1];
    if (target >= lowest_) return false;
    if (!has_jumped_) end_ = next_ + 2;
    has_jumped_ = true;
    next_ = lowest_ = target;
    return true;
  }

  std::span<const std::uint8_t> message_;
  std::size_t next_;
  std::size_t lowest_;
  std::size_t length_ = 0;
  std::size_t end_ = 0;
  bool has_jumped_ = false;
  bool is_good_ = true;
};

bool Reader::number16(std::uint16_t& number) {
  if (left() < 2) return false;
  number = static_cast<std::uint16_t>(message_[next_] << 8 | message_[next_ + 1]);
  next_ += 2;
  return true;
}

bool Reader::number32(std::uint32_t& number) {
  std::uint16_t high;
  std::uint16_t low;
  if (!number16(high) || !number16(low)) return false;
  number = static_cast<std::uint32_t>(high) << 16 | low;
  return true;
}

bool Reader::header(Header& header) {
  return number16(header.id) && number16(header.flags) && number16(header.questions) &&
         number16(header.answers) && number16(header.authorities) && number16(header.additional);
}

bool Reader::name(NameText& text) {
  Labels labels(message_, next_);
  std::span<const std::uint8_t> label;
  char* end = text;
  while (labels.next(label)) {
    const auto is_odd = [](std::uint8_t byte) { return byte == '.' || byte == '\0'; };
    if (std::ranges::any_of(label, is_odd)) return false;
    if (end != text) *end++ = '.';
    std::memcpy(end, label.data(), label.size());
    end += label.size();
  }
  *end = '\0';
  next_ = labels.end();
  return labels.is_good();
}

bool Reader::skip_name() {
  Labels labels(message_, next_);
  std::span<const std::uint8_t> label;
  while (labels.next(label)) {
  }
  next_ = labels.end();
  return labels.is_good();
}

bool Reader::question(Question& question) {
  return name(question.name) && number16(question.type) && number16(question.dns_class);
}

bool Reader::record(Record& record) {
  std::uint16_t size;
  if (!skip_name() || !number16(record.type) || !number16(record.dns_class) ||
      !number32(record.ttl) || !number16(size) || left() < size) {
    return false;
  }
  record.begin = next_;
  record.size = size;
  next_ += size;
  return true;
}

Reader Reader::reader_of(const Record& record) const {
  return Reader(message_.first(record.begin + record.size), record.begin);
}

// ---- writing

bool Writer::bytes(const void* bytes, std::size_t size) {
  if (size > room_.size() - size_) return false;
  if (size > 0) std::memcpy(room_.data() + size_, bytes, size);
  size_ += size;
  return true;
}

bool Writer::number16(std::size_t number) {
  const std::uint8_t both[2] = {static_cast<std::uint8_t>(number >> 8),
                                static_cast<std::uint8_t>(number)};
  return bytes(both, sizeof both);
}

bool Writer::number32(std::uint32_t number) {
  return number16(number >> 16) && number16(number & 0xffff);
}

bool Writer::give_up(const Place& since) {
  size_ = since.size;
  known_count_ = since.known;
  return false;
}

void Writer::header(const Header& header) {
  const std::size_t end = std::max(size_, kHeaderSize);
  size_ = 0;
  number16(header.id);
  number16(header.flags);
  number16(header.questions);
  number16(header.answers);
  number16(header.authorities);
  number16(header.additional);
  size_ = end;
}

const Writer::Known* Writer::find(std::string_view text) const {
  const Known* end = known_ + known_count_;
  const Known* found = std::find_if(known_, end, [&](const Known& k) { return k.text == text; });
  return found != end ? found : nullptr;
}

bool Writer::labels(std::string_view text) {
  while (!text.empty()) {
    if (const Known* known = find(text)) return number16(kPointer << 8 | known->at);
    if (known_count_ < kKnownMost && size_ <= kOffsetMost) {
      known_[known_count_++] = {text, static_cast<std::uint16_t>(size_)};
    }
    std::string_view label;
    if (!take_label(text, label)) return false;
    const auto size = static_cast<std::uint8_t>(label.size());
    if (!bytes(&size, 1) || !bytes(label.data(), label.size())) return false;
  }
  return bytes("", 1);
}

bool Writer::name(std::string_view text) {
  const Place before = place();
  text = without_last_dot(text);
  return (text.size() <= kNameMost && labels(text)) || give_up(before);
}

bool Writer::question(std::string_view text, std::uint16_t type, std::uint16_t dns_class) {
  const Place before = place();
  const bool fits = name(text) && room_.size() - size_ >= kNumbersOfQuestion;
  return fits ? number16(type) && number16(dns_class) : give_up(before);
}

bool Writer::record_head(std::string_view owner, std::uint16_t type, std::uint16_t dns_class,
                         std::uint32_t ttl) {
  return name(owner) && number16(type) && number16(dns_class) && number32(ttl);
}

bool Writer::record(std::string_view owner, std::uint16_t type, std::uint16_t dns_class,
                    std::uint32_t ttl, std::span<const std::uint8_t> data) {
  const Place before = place();
  return (data.size() <= UINT16_MAX && record_head(owner, type, dns_class, ttl) &&
          number16(data.size()) && bytes(data.data(), data.size())) ||
         give_up(before);
}

bool Writer::name_record(std::string_view owner, std::uint16_t type, std::uint16_t dns_class,
                         std::uint32_t ttl, std::string_view target) {
  const Place before = place();
  if (!record_head(owner, type, dns_class, ttl) || !number16(0)) return give_up(before);
  const std::size_t begin = size_;
  if (!name(target)) return give_up(before);
  const std::size_t end = std::exchange(size_, begin - 2);
  number16(end - begin);
  size_ = end;
  return true;
}

}  // namespace spate::libevent::dns
