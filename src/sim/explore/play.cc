#include "sim/explore/play.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/explore/serialized_play.h"
#include "sim/kernel/kernel.h"

namespace spate::sim {

namespace {

std::vector<std::string> lines_of(const std::vector<Event>& events) {
  const std::vector<std::string> hosts = Kernel::current()->world().host_names();
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(line_of(event, hosts));
  return lines;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string read_all(int fd) {
  std::string bytes;
  char piece[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(fd, piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(piece, static_cast<std::size_t>(count));
  }
}

Play failed_play(std::string name) {
  Play play;
  play.findings.failure = {.name = std::move(name)};
  return play;
}

Play end_of(pid_t child, const std::string& bytes) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return failed_play(std::string("the program ends: ") + ::strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0)
    return failed_play("the program calls exit(" + std::to_string(WEXITSTATUS(status)) + ')');
  std::optional<Play> play = parse_play(bytes);
  return play ? std::move(*play) : failed_play("the program calls exit(0)");
}

}  // namespace

Findings::Failure failure_of(std::string_view name) {
  const Kernel& kernel = *Kernel::current();
  std::vector<Event> last = kernel.history.events();
  if (last.size() > History::kLast)
    last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(History::kLast));
  return {.name = std::string(name),
          .time = kernel.since_beginning(),
          .events = lines_of(last),
          .state = kernel.world().describe()};
}

Play play(const Trial& trial, const Program& program) {
  World world(trial.seed);
  Kernel& kernel = *Kernel::current();
  if (trial.only) kernel.faults.let_pass(*trial.only);
  if (trial.keeps_all_events) kernel.history.keep_all();
  program(world);
  Play done{.findings = std::move(kernel.findings),
            .trace = world.trace(),
            .faults = kernel.faults.count(),
            .time = world.now()};
  if (trial.only) done.passed = lines_of(kernel.faults.passed());
  if (trial.keeps_all_events) done.events = lines_of(kernel.history.events());
  return done;
}

Play play_apart(const Trial& trial, const Program& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed_play("there are no descriptors for a process");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_all(ends[1], serialize(play(trial, program)));
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string bytes = read_all(ends[0]);
  ::close(ends[0]);
  return child < 0 ? failed_play("there is no other process") : end_of(child, bytes);
}

}  // namespace spate::sim
