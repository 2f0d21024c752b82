#include "core/user_code.h"

#include <cstring>
#include <exception>

#include "sys/descriptor.h"

namespace spate {

namespace {

struct Kind {
  Events events;
  std::string_view name;
};

constexpr Kind kKinds[] = {
    {kIoEvents, "Io"},          {Events::timer, "Timer"},     {Events::periodic, "Periodic"},
    {Events::signal, "Signal"}, {Events::child, "Child"},     {Events::stat, "Stat"},
    {Events::async, "Async"},   {Events::prepare, "Prepare"}, {Events::check, "Check"},
    {Events::idle, "Idle"},     {Events::fork, "Fork"},       {Events::cleanup, "Cleanup"},
    {Events::custom, "feed()"},
};

}  // namespace

std::string_view kind_of(Events events) noexcept {
  for (const Kind& kind : kKinds) {
    if (any(events & kind.events)) return kind.name;
  }
  return "a watcher";
}

void exception_left(const char* whose) noexcept {
  char line[100] = "spate: an exception left a callback: ";
  std::strncat(line, whose, 40);
  std::strcat(line, "\n");
  sys::write(STDERR_FILENO, line, std::strlen(line));
  std::terminate();
}

void exception_left(Events whose) noexcept { exception_left(kind_of(whose).data()); }

}  // namespace spate
