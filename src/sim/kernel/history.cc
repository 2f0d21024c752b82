#include "sim/kernel/history.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace spate::sim {

namespace {

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::segment:
      return "comes";
    case EventKind::packet:
      return "comes";
    case EventKind::local:
      return "to itself";
    case EventKind::cut:
      return "cut";
    case EventKind::healed:
      return "healed";
    case EventKind::crashed:
      return "crashes";
    case EventKind::restarted:
      return "is up again";
    case EventKind::paused:
      return "is paused";
    case EventKind::resumed:
      return "goes on";
    case EventKind::noted:
      return "note";
    case EventKind::lost:
      return "lost";
    case EventKind::doubled:
      return "comes twice";
    case EventKind::overtaken:
      return "is overtaken";
    case EventKind::injected:
      return "strikes";
    case EventKind::failed:
      return "fails";
  }
  std::unreachable();
}

// Independent of byte order.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

bool is_fault(EventKind kind) { return kind >= EventKind::lost; }

}  // namespace

std::uint64_t hash_of(std::string_view bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::uint64_t hash = mix(bytes.size());
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord))
    hash = mix(hash ^ word_of(bytes.substr(0, kWord)));
  return bytes.empty() ? hash : mix(hash ^ word_of(bytes));
}

void History::note(const Event& event) {
  note(static_cast<std::uint64_t>(event.time.count()));
  note(static_cast<std::uint64_t>(event.kind) << 56 ^ event.number);
  note(event.hash);
  if (keeps_all_) {
    if (kept_.size() < kMost) kept_.push_back(event);
  } else if (kept_.size() < kLast) {
    kept_.push_back(event);
  } else {
    kept_[count_ % kLast] = event;
  }
  ++count_;
}

std::vector<Event> History::events() const {
  std::vector<Event> events = kept_;
  if (!keeps_all_ && count_ > kLast)
    std::ranges::rotate(events, events.begin() + static_cast<std::ptrdiff_t>(count_ % kLast));
  return events;
}

std::string seconds_of(Nanos time) {
  std::string digits = std::to_string(time.count() % 1'000'000'000 + 1'000'000'000);
  digits[0] = '.';
  return std::to_string(time.count() / 1'000'000'000) + digits + " s";
}

std::string line_of(const Event& event, const std::vector<std::string>& hosts) {
  const auto host = [&](int index) {
    const auto number = static_cast<std::size_t>(index);
    return number < hosts.size() ? hosts[number] : std::string("nobody");
  };
  std::string line = seconds_of(event.time) + "  ";
  if (event.from >= 0) line += host(event.from);
  if (event.to >= 0) line += " -> " + host(event.to);
  if (event.from >= 0) line += ": ";
  line += name_of(event.kind);
  if (!event.what.empty()) line.append(": ").append(event.what);
  if (event.size != 0) line += ", " + std::to_string(event.size) + " bytes";
  if (!event.text.empty()) line += ": " + event.text;
  if (is_fault(event.kind)) line += " (fault " + std::to_string(event.number) + ')';
  return line;
}

}  // namespace spate::sim
