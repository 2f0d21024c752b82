#include "chaos/channel.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "chaos/verdict.h"
#include "support/random.h"

namespace spate::chaos {

namespace {

// A prime: no buffer's size divides it, so that bytes of another round are detected, too.
constexpr std::size_t kPeriod = 131071;
constexpr std::size_t kMax = 1u << 20;

struct Table {
  Table() {
    testing::Random random(2024);
    for (std::size_t i = 0; i < kPeriod; ++i) bytes[i] = static_cast<std::byte>(random.next());
    for (std::size_t i = kPeriod; i < sizeof(bytes); ++i) bytes[i] = bytes[i - kPeriod];
  }
  std::byte bytes[kPeriod + kMax];
};

const Table& table() {
  static const Table made;
  return made;
}

std::size_t begin_of(unsigned number) { return std::size_t{number} * 40503 % kPeriod; }

// Describes the source of the bytes, for a failure report.
std::string owner_of(Bytes bytes) {
  if (bytes.size() < 4) return "too few to tell whose they are";
  const std::size_t size = std::min<std::size_t>(bytes.size(), 16);
  const std::byte* begin = table().bytes;
  const std::byte* found =
      std::search(begin, begin + kPeriod + size, bytes.begin(), bytes.begin() + size);
  if (found == begin + kPeriod + size) {
    std::string text = "of no pattern:";
    for (const std::byte byte : bytes.first(size))
      text += " " + std::to_string(std::to_integer<int>(byte));
    return text;
  }
  std::string owners = "of ";
  for (unsigned number = 1; number < 40; ++number) {
    const auto place = static_cast<std::size_t>(found - begin);
    const std::size_t offset = (place + kPeriod - begin_of(number)) % kPeriod;
    if (offset < 20000)
      owners += "channel " + std::to_string(number) + " at " + std::to_string(offset) + " ";
  }
  return owners;
}

}  // namespace

Bytes pattern(unsigned number, std::size_t offset, std::size_t size) {
  return {table().bytes + (begin_of(number) + offset) % kPeriod, std::min(size, kMax)};
}

void Channel::accept(unsigned number, std::size_t offset, std::size_t size) {
  if (size == 0) return;
  const bool continues = !segments_.empty() && segments_.back().number == number &&
                         segments_.back().offset + (accepted_ - segments_.back().at) == offset;
  if (!continues) segments_.push_back({accepted_, number, offset});
  accepted_ += size;
}

void Channel::follow(Channel& source, std::size_t at) {
  pull();
  source_ = &source;
  source_from_ = source_to_ = at;
}

void Channel::pull() {
  if (source_ == nullptr || source_->accepted() <= source_to_) return;
  const std::size_t from = std::exchange(source_to_, source_->accepted());
  accept_from(*source_, from, source_to_ - from);
}

void Channel::accept_from(Channel& other, std::size_t at, std::size_t size) {
  other.pull();
  size = at < other.accepted_ ? std::min(size, other.accepted_ - at) : 0;
  while (size > 0) {
    const std::size_t i = other.segment_of(at);
    const Segment segment = other.segments_[i];
    const std::size_t part = std::min(size, other.end_of(i) - at);
    accept(segment.number, segment.offset + (at - segment.at), part);
    at += part;
    size -= part;
  }
}

std::size_t Channel::segment_of(std::size_t at) const {
  const auto behind = std::upper_bound(
      segments_.begin(), segments_.end(), at,
      [](std::size_t place, const Segment& segment) { return place < segment.at; });
  return static_cast<std::size_t>(behind - segments_.begin()) - 1;
}

bool Channel::begins_with(Bytes bytes) {
  if (bytes.size() > accepted() + refused_.size()) return false;
  const std::size_t size = std::min(bytes.size(), segments_.empty() ? 0 : end_of(0));
  const Bytes due = size == 0 ? Bytes() : pattern(segments_[0].number, segments_[0].offset, size);
  if (size > 0) return std::equal(due.begin(), due.end(), bytes.begin());
  return refuser_of(0, bytes) != nullptr;
}

const Channel* Channel::refuser_of(std::size_t at, Bytes bytes) const {
  const std::size_t skip = at < refused_at_ ? refused_.size() : at - refused_at_;
  const Bytes refused = Bytes(refused_).subspan(std::min(skip, refused_.size()));
  const bool is_here =
      bytes.size() <= refused.size() && std::equal(bytes.begin(), bytes.end(), refused.begin());
  if (is_here) return this;
  if (source_ == nullptr || at < own_part()) return nullptr;
  return source_->refuser_of(source_from_ + at - own_part(), bytes);
}

// If memory ran out, a refused write was sent in part, and its connection is closed.
bool Channel::shows_refused(std::size_t at, Bytes bytes, const char* who) {
  const Channel* const refuser = refuser_of(at, bytes);
  if (refuser == nullptr) return false;
  lose("refused, and sent in part");
  check(refuser->may_show_refused_, "refused_sends_nothing",
        "%s: %zu bytes of a write that was refused", who, bytes.size());
  return true;
}

void Channel::verify(std::size_t at, Bytes bytes, const char* who) {
  pull();
  if (at + bytes.size() > accepted_) {
    const std::size_t known = accepted_ > at ? accepted_ - at : 0;
    if (known > 0) verify(at, bytes.first(known), who);
    const Bytes more = bytes.subspan(known);
    if (shows_refused(at + known, more, who)) return;
    fail("own_bytes",
         (std::string(who) + ": " + std::to_string(bytes.size() - known) + " bytes behind " +
          std::to_string(at + known) + " that nobody has sent, " + owner_of(bytes.subspan(known)))
             .c_str());
  }
  while (!bytes.empty()) {
    const std::size_t i = segment_of(at);
    const Segment& segment = segments_[i];
    const std::size_t part = std::min({bytes.size(), end_of(i) - at, kMax});
    const Bytes due = pattern(segment.number, segment.offset + (at - segment.at), part);
    if (std::memcmp(due.data(), bytes.data(), part) != 0) {
      const auto wrong = static_cast<std::size_t>(
          std::mismatch(due.begin(), due.end(), bytes.begin()).first - due.begin());
      if (shows_refused(at + wrong, bytes.subspan(wrong), who)) return;
      fail("own_bytes", (std::string(who) + ": wrong from " + std::to_string(at + wrong) +
                         " on: what is there is " + owner_of(bytes.subspan(wrong)))
                            .c_str());
    }
    at += part;
    bytes = bytes.subspan(part);
  }
}

void Channel::show(std::size_t end, Nanos now) {
  if (end <= shown_) return;
  shown_ = end;
  last_progress = now;
  pull();
  if (source_ != nullptr && end > own_part()) source_->show(source_from_ + end - own_part(), now);
}

}  // namespace spate::chaos
