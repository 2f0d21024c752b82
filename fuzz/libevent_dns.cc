// Messages of DNS, of the drop-in libevent: answers to a question, and any records. Written
// messages are parsed as the same.
#include <span>

#include "compat/libevent/dns/answer.h"
#include "compat/libevent/dns/message.h"
#include "input.h"

namespace spate::fuzz {
namespace {

using namespace spate::libevent::dns;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void read_as_answer(std::string_view message) {
  static constexpr std::uint16_t kTypes[] = {1, 12, 28};
  for (const std::uint16_t type : kTypes) {
    std::uint8_t query[64];
    Writer writer(query);
    writer.header(
        {.id = 1, .flags = 0, .questions = 1, .answers = 0, .authorities = 0, .additional = 0});
    check(writer.question("a.b", type, 1));
    Answer answer;
    read_answer(bytes_of(message), std::span(query).first(writer.size()), answer);
    check(answer.count >= 0 && answer.count <= kAddressesMost);
    check(answer.error == 0 || answer.count == 0);
  }
}

void read_names(std::string_view message) {
  Reader reader(bytes_of(message));
  NameText name;
  while (reader.name(name)) {
    std::uint8_t room[kWireNameMost];
    Writer writer(room);
    check(writer.name(name));
    Reader written{std::span(room).first(writer.size())};
    NameText again;
    check(written.name(again) && std::string_view(again) == name);
  }
}

void write_names(Input& input) {
  std::uint8_t room[300];
  Writer writer(room);
  for (int i = 0; i < 20 && !input.empty(); ++i) {
    const std::string_view name = input.text(80);
    const std::size_t before = writer.size();
    if (name.find('\0') != name.npos) continue;
    if (!writer.name(name)) check(writer.size() == before);
    check(writer.size() <= sizeof room);
  }
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  switch (input.byte() % 3) {
    case 0:
      read_as_answer(input.rest());
      break;
    case 1:
      read_names(input.rest());
      break;
    default:
      write_names(input);
  }
  return 0;
}
