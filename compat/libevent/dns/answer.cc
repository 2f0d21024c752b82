#include "compat/libevent/dns/answer.h"

#include <algorithm>
#include <cstring>

#include "compat/libevent/dns_api.h"

namespace spate::libevent::dns {
namespace {

constexpr std::uint32_t kNoTtl = UINT32_MAX;

int error_of(unsigned flags) {
  if ((flags & kIsTruncated) != 0) return DNS_ERR_TRUNCATED;
  const unsigned code = flags & kResultCode;
  return code <= DNS_ERR_REFUSED ? static_cast<int>(code) : DNS_ERR_UNKNOWN;
}

// Adds the addresses of a record; returns false if one is incomplete.
template <std::size_t size>
bool add_addresses(std::span<const std::uint8_t> data, void* addresses, int& count) {
  if (data.size() % size != 0) return false;
  const std::size_t room = kAddressesMost - static_cast<std::size_t>(count);
  const std::size_t added = std::min(data.size() / size, room);
  auto* end = static_cast<std::uint8_t*>(addresses) + static_cast<std::size_t>(count) * size;
  if (added > 0) std::memcpy(end, data.data(), added * size);
  count += static_cast<int>(added);
  return true;
}

class AnswerReader {
 public:
  AnswerReader(Reader& reader, std::uint16_t type, Answer& answer)
      : reader_(reader), type_(type), answer_(answer) {}

  // Reads records until the answer is full. Returns false if a record is malformed.
  bool answers(int count) {
    for (; count > 0 && !is_full(); --count) {
      Record record;
      if (!reader_.record(record)) return false;
      if (record.dns_class == EVDNS_CLASS_INET && !take(record)) return false;
    }
    return true;
  }

  // How long a negative answer may be cached (RFC 2308).
  bool authorities(int count) {
    for (; count > 0; --count) {
      Record record;
      if (!reader_.record(record)) return false;
      if (record.type == EVDNS_TYPE_SOA && record.dns_class == EVDNS_CLASS_INET) {
        take_authority(record);
      }
    }
    return true;
  }

  bool has_answer() const { return has_answer_; }
  std::uint32_t ttl() const { return ttl_ == kNoTtl ? 0 : ttl_; }

 private:
  bool is_full() const {
    return has_answer_ && (type_ == EVDNS_TYPE_PTR || answer_.count == kAddressesMost);
  }

  bool take(const Record& record) {
    if (record.type == EVDNS_TYPE_CNAME) {
      if (answer_.canonical[0] != '\0') return true;
      return reader_.reader_of(record).name(answer_.canonical);
    }
    if (record.type != type_) return true;
    ttl_ = std::min(ttl_, record.ttl);
    has_answer_ = true;
    const auto data = reader_.data_of(record);
    if (type_ == EVDNS_TYPE_A) return add_addresses<4>(data, answer_.ipv4, answer_.count);
    if (type_ == EVDNS_TYPE_AAAA) return add_addresses<16>(data, answer_.ipv6, answer_.count);
    answer_.count = 1;
    return reader_.reader_of(record).name(answer_.name);
  }

  // Skips a malformed one.
  void take_authority(const Record& record) {
    Reader data = reader_.reader_of(record);
    std::uint32_t number;
    if (!data.skip_name() || !data.skip_name()) return;
    for (int i = 0; i < 5; ++i) {  // The last of them is the minimum.
      if (!data.number32(number)) return;
    }
    ttl_ = std::min({ttl_, record.ttl, number});
  }

  Reader& reader_;
  std::uint16_t type_;
  Answer& answer_;
  std::uint32_t ttl_ = kNoTtl;
  bool has_answer_ = false;
};

// A server that could not process the question need not repeat it.
bool may_lack_question(int error) { return error != DNS_ERR_NONE && error != DNS_ERR_NOTEXIST; }

// A server may repeat the name in another case (RFC 4343), as some do from a cache.
bool is_asked(Reader& reader, std::span<const std::uint8_t> query, std::uint16_t& type) {
  Reader asked(query);
  Header header;
  Question question;
  Question repeated;
  if (!asked.header(header) || !asked.question(question) || !reader.question(repeated)) {
    return false;
  }
  type = question.type;
  return question.type == repeated.type && question.dns_class == repeated.dns_class &&
         evutil_ascii_strcasecmp(question.name, repeated.name) == 0;
}

// Sets the answer to an error.
void fail(Answer& answer, int error, std::uint32_t ttl) {
  answer = {};
  answer.error = error;
  answer.ttl = ttl;
}

}  // namespace

void read_answer(std::span<const std::uint8_t> message, std::span<const std::uint8_t> query,
                 Answer& answer) {
  answer = {};
  Reader reader(message);
  Header header;
  if (!reader.header(header)) return fail(answer, DNS_ERR_UNKNOWN, 0);
  const int error = error_of(header.flags);
  if (header.questions == 0 && may_lack_question(error)) return fail(answer, error, 0);
  std::uint16_t type;
  if (header.questions != 1 || !is_asked(reader, query, type)) {
    return fail(answer, DNS_ERR_UNKNOWN, 0);
  }
  if (may_lack_question(error)) return fail(answer, error, 0);

  AnswerReader records(reader, type, answer);
  if (!records.answers(header.answers)) {
    return fail(answer, error != DNS_ERR_NONE ? error : DNS_ERR_UNKNOWN, 0);
  }
  if (!records.has_answer() && !records.authorities(header.authorities)) {
    return fail(answer, error != DNS_ERR_NONE ? error : DNS_ERR_UNKNOWN, 0);
  }
  if (error != DNS_ERR_NONE) return fail(answer, error, records.ttl());
  if (!records.has_answer()) return fail(answer, DNS_ERR_NODATA, records.ttl());
  answer.ttl = records.ttl();
}

}  // namespace spate::libevent::dns
