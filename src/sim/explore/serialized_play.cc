#include "sim/explore/serialized_play.h"

#include <cstring>
#include <utility>

namespace spate::sim {

namespace {

class Writer {
 public:
  void put(std::uint64_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void put(std::string_view text) {
    put(text.size());
    bytes += text;
  }
  void put(const std::vector<std::string>& lines) {
    put(lines.size());
    for (const std::string& line : lines) put(std::string_view(line));
  }

  std::string bytes;
};

// A truncated input reads as zero, and is_whole() returns false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t read = 0;
    const std::string_view digits = take(sizeof(read));
    std::memcpy(&read, digits.data(), digits.size());
    return read;
  }
  std::string text() { return std::string(take(number())); }
  std::vector<std::string> lines() {
    std::vector<std::string> read;
    for (std::uint64_t left = number(); left != 0 && is_whole_; --left) read.push_back(text());
    return read;
  }
  bool has_more() const { return is_whole_ && !bytes_.empty(); }
  bool is_whole() const { return is_whole_ && bytes_.empty(); }

 private:
  std::string_view take(std::uint64_t size) {
    is_whole_ = is_whole_ && size <= bytes_.size();
    const std::string_view taken = is_whole_ ? bytes_.substr(0, size) : std::string_view("");
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view bytes_;
  bool is_whole_ = true;
};

}  // namespace

std::string serialize(const Play& play) {
  Writer writer;
  writer.put(play.trace);
  writer.put(play.faults);
  writer.put(static_cast<std::uint64_t>(play.time.count()));
  writer.put(play.passed);
  writer.put(play.events);
  writer.put(play.findings.sometimes.size());
  for (const auto& [name, held] : play.findings.sometimes) {
    writer.put(std::string_view(name));
    writer.put(held ? 1u : 0u);
  }
  writer.put(play.findings.failure ? 1u : 0u);
  if (!play.findings.failure) return writer.bytes;
  writer.put(std::string_view(play.findings.failure->name));
  writer.put(static_cast<std::uint64_t>(play.findings.failure->time.count()));
  writer.put(play.findings.failure->events);
  writer.put(std::string_view(play.findings.failure->state));
  return writer.bytes;
}

std::optional<Play> parse_play(std::string_view bytes) {
  Reader reader(bytes);
  Play play;
  play.trace = reader.number();
  play.faults = reader.number();
  play.time = Nanos{static_cast<std::int64_t>(reader.number())};
  play.passed = reader.lines();
  play.events = reader.lines();
  for (std::uint64_t left = reader.number(); left != 0 && reader.has_more(); --left) {
    const std::string name = reader.text();
    play.findings.sometimes[name] = reader.number() != 0;
  }
  if (reader.number() != 0) {
    Findings::Failure failure;
    failure.name = reader.text();
    failure.time = Nanos{static_cast<std::int64_t>(reader.number())};
    failure.events = reader.lines();
    failure.state = reader.text();
    play.findings.failure = std::move(failure);
  }
  if (!reader.is_whole()) return std::nullopt;
  return play;
}

}  // namespace spate::sim
