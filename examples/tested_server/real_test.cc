// Tests the responses of the lock server on real sockets. Exits with 0 on success.
#include <cstdio>
#include <string_view>

#include "asker.h"
#include "server.h"

namespace {

bool hears(spate::Loop& loop, const Asker& asker, std::string_view answers) {
  while (asker.answers().size() < answers.size() && !asker.is_over()) loop.run(spate::Run::once);
  std::printf("%s", asker.answers().c_str());
  return asker.answers() == answers;
}

}  // namespace

int main() {
  auto loop = spate::must(spate::Loop::create());
  LockServer server(*loop, spate::Address::loopback_ipv4(0));
  Asker one(*loop, server.address());
  Asker other(*loop, server.address());
  one.say("lock door");
  if (!hears(*loop, one, "yours\n")) return 1;
  other.say("lock door");
  if (!hears(*loop, other, "taken\n")) return 1;
  one.say("unlock door");
  if (!hears(*loop, one, "yours\nfree\n")) return 1;
  other.say("lock door");
  other.say("open door");
  return hears(*loop, other, "taken\nyours\nwhat?\n") ? 0 : 1;
}
