#include "chaos/program.h"

#include <cstdio>

namespace spate::chaos {

namespace {

enum Places : std::uint8_t { kOutside = 1, kInside = 2, kBoth = 3, kInData = 4 };

struct OpInfo {
  const char* name;
  unsigned weight;
  Places places;
};

constexpr OpInfo kInfos[kOps] = {
    {"link", 20, kBoth},
    {"turn", 190, kOutside},
    {"advance", 45, kBoth},
    {"run", 28, kInside},
    {"run_for", 12, kBoth},
    {"stop", 5, kBoth},
    {"post", 12, kBoth},
    {"timer", 24, kBoth},
    {"group", 8, kBoth},
    {"publish", 30, kBoth},
    {"fork", 2, kOutside},
    {"ask", 10, kBoth},
    {"after", 10, kBoth},
    {"defer", 10, kBoth},
    {"signal", 10, kBoth},
    {"offload", 12, kBoth},
    {"offloading", 8, kBoth},
    {"spawn", 3, kBoth},
    {"process", 20, kBoth},
    {"write", 80, kBoth},
    {"write_buffer", 28, kBoth},
    {"write_pieces", 16, kBoth},
    {"write_span", 20, kBoth},
    {"echo", 40, kInData},
    {"send_file", 12, kBoth},
    {"send_descriptors", 24, kBoth},
    {"take_descriptors", 8, kBoth},
    {"end", 10, kBoth},
    {"close", 9, kBoth},
    {"abort", 8, kBoth},
    {"destroy", 10, kBoth},
    {"pause", 20, kBoth},
    {"resume", 22, kBoth},
    {"start_again", 16, kBoth},
    {"use", 36, kBoth},
    {"limits", 22, kBoth},
    {"rate", 12, kBoth},
    {"join", 8, kBoth},
    {"half_open", 10, kBoth},
    {"want", 20, kBoth},
    {"unread", 8, kBoth},
    {"configure", 12, kBoth},
    {"functions", 16, kBoth},
    {"idle_timeout", 9, kBoth},
    {"read_timeout", 8, kBoth},
    {"write_timeout", 8, kBoth},
    {"deadline", 8, kBoth},
    {"release", 9, kBoth},
    {"move", 8, kBoth},
    {"move_over", 4, kBoth},
    {"kernel_buffers", 6, kBoth},
    {"reconnect", 8, kBoth},
    {"become_session", 24, kBoth},
    {"relay", 16, kBoth},
    {"secure", 20, kBoth},
    {"peer_send", 60, kBoth},
    {"peer_read", 26, kBoth},
    {"peer_mode", 22, kBoth},
    {"peer_end", 7, kBoth},
    {"peer_reset", 6, kBoth},
    {"peer_close", 5, kBoth},
    {"listen", 9, kBoth},
    {"listener", 6, kBoth},
    {"connect", 24, kBoth},
    {"connecting", 4, kBoth},
    {"connect_stream", 14, kBoth},
    {"client", 5, kBoth},
    {"sessions", 14, kBoth},
    {"sessions_change", 24, kBoth},
    {"relaying", 14, kBoth},
    {"handshake", 8, kBoth},
    {"packets", 10, kBoth},
    {"packets_send", 30, kBoth},
    {"packets_change", 7, kBoth},
};

constexpr const char* kWhereNames[kWheres] = {
    "outside",        "anywhere",    "on_data",    "on_end",    "on_drained", "on_closed",
    "on_descriptors", "in timer",    "in post",    "on_accept", "connected",  "on_packets",
    "on_error",       "on_writable", "in release", "on_open",   "on_drain",   "when done",
    "in destructor"};

constexpr unsigned total_weight() {
  unsigned total = 0;
  for (const OpInfo& info : kInfos) total += info.weight;
  return total;
}

Op choose_op(Tape& tape) {
  std::size_t left = tape.below(total_weight());
  int op = 0;
  while (left >= kInfos[op].weight) left -= kInfos[op++].weight;
  return static_cast<Op>(op);
}

// Half of the operations allowed in callbacks are done there: mostly in any callback, since some
// kinds are rare.
Where choose_where(Tape& tape, Places places) {
  if (places == kInData) return Where::data;
  const std::size_t choice = tape.below(64);
  if (places == kOutside || (places == kBoth && choice < 32)) return Where::outside;
  if (choice % 3 == 0) return Where::anywhere;
  if (choice % 3 == 1) return Where::data;
  return static_cast<Where>(2 + tape.below(kWheres - 2));
}

Step make_step(Tape& tape) {
  Step step{};
  step.op = choose_op(tape);
  step.where = choose_where(tape, kInfos[static_cast<int>(step.op)].places);
  step.target = static_cast<std::uint8_t>(tape.below(256));
  step.more = tape.below(3) != 0;
  step.a = tape.number();
  step.b = static_cast<std::uint32_t>(tape.below(256));
  return step;
}

}  // namespace

const char* name_of(Op op) { return kInfos[static_cast<int>(op)].name; }
const char* name_of(Where where) { return kWhereNames[static_cast<int>(where)]; }

bool is_possible(Op op, Where where) {
  const OpInfo& info = kInfos[static_cast<int>(op)];
  if (info.weight == 0 || where == Where::anywhere) return false;
  if (info.places == kInData) return where == Where::data;
  return (info.places & (where == Where::outside ? kOutside : kInside)) != 0;
}

Program make_program(Tape& tape) {
  Program program;
  const std::size_t weather = tape.below(16);
  program.weather = weather < 11 ? Weather::fair : weather < 14 ? Weather::gusty : Weather::stormy;
  program.weather_seed = tape.number();
  program.loop_goes_first = tape.one_in(16);
  const std::size_t links = 1 + tape.below(3);
  for (std::size_t i = 0; i < links; ++i) {
    program.steps.push_back({.op = Op::link,
                             .where = Where::outside,
                             .target = 0,
                             .more = false,
                             .a = tape.number(),
                             .b = static_cast<std::uint32_t>(tape.below(256))});
  }
  const std::size_t count = 20 + tape.below(60);
  for (std::size_t i = 0; i < count && !tape.is_over(); ++i) {
    Step step = make_step(tape);
    Step& before = program.steps.back();
    // Several operations in one callback find more bugs than one alone.
    const bool joins = step.where != Where::outside && before.where != Where::outside;
    if (joins && tape.below(2) == 0) {
      before.more = true;
      if (step.op != Op::echo) step.where = before.where;
    }
    program.steps.push_back(step);
  }
  return program;
}

std::string to_string(const Step& step) {
  char text[120];
  std::snprintf(text, sizeof(text), "%-14s %-16s a=%u b=%u target=%u%s", name_of(step.where),
                name_of(step.op), step.a, step.b, step.target, step.more ? " more" : "");
  return text;
}

}  // namespace spate::chaos
