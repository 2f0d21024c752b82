#include "core/user_code.h"

#include <cstring>
#include <exception>

#include "sys/descriptor.h"

namespace spate {

namespace {

struct Kind {
  Events events;
  const char* name;
};

constexpr Kind kKinds[] = {
    {kIoEvents, "Io"},          {Events::timer, "Timer"},     {Events::periodic, "Periodic"},
    {Events::signal, "Signal"}, {Events::child, "Child"},     {Events::stat, "Stat"},
    {Events::async, "Async"},   {Events::prepare, "Prepare"}, {Events::check, "Check"},
    {Events::idle, "Idle"},     {Events::fork, "Fork"},       {Events::cleanup, "Cleanup"},
    {Events::custom, "feed()"},
};

}  // namespace

void exception_left(const char* whose) noexcept {
  char line[100] = "spate: an exception left a callback: ";
  std::strncat(line, whose, 40);
  std::strcat(line, "\n");
  sys::write(STDERR_FILENO, line, std::strlen(line));
  std::terminate();
}

void exception_left(Events whose) noexcept {
  for (const Kind& kind : kKinds) {
    if (any(whose & kind.events)) exception_left(kind.name);
  }
  exception_left("a watcher");
}

}  // namespace spate
