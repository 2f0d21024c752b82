// Runs a few programs at once and reports what they say and how each of them ends.
//   example_children program arguments...      without arguments, a few of its own
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "spate/net/framing.h"
#include "spate/net/process.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

// A program whose lines are printed as they come.
class Job final : public spate::StreamHandler {
 public:
  Job(spate::Loop& loop, std::string name, std::vector<std::string> arguments) : name_(name) {
    spate::ProcessOptions options;
    options.file = std::move(name);
    options.arguments = std::move(arguments);
    options.output = spate::Stdio::pipe();
    options.errors = spate::Stdio::output();
    options.kill_when_destroyed = true;
    spate::Result<spate::Process> process =
        spawn(loop, options, [this](const spate::Child& child) { report(child); });
    if (!process) {
      std::printf("%s: %s\n", name_.c_str(), process.error().message().c_str());
      return;
    }
    process_ = std::move(*process);
    process_.output.start(*this);
  }

  // -1 as long as it has not exited by itself.
  int exit_code() const { return exit_code_; }
  bool was_ended() const { return was_ended_; }
  void end() { process_.kill(SIGTERM); }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    const auto print = [this](spate::Bytes line) {
      std::printf("%s (%d): %.*s\n", name_.c_str(), process_.pid(), static_cast<int>(line.size()),
                  spate::text_of(line).data());
    };
    const spate::Split split = spate::split(bytes, spate::Delimiter{"\n"}, print);
    return split.broken ? bytes.size() : split.used;  // A line beyond all measure.
  }
  void on_closed(std::error_code) override {}

  void report(const spate::Child& child) {
    was_ended_ = child.signaled();
    if (was_ended_) {
      std::printf("%s (%d) was ended by signal %d\n", name_.c_str(), child.pid(),
                  child.term_signal());
    } else {
      exit_code_ = child.exit_code();
      std::printf("%s (%d) exited with %d\n", name_.c_str(), child.pid(), exit_code_);
    }
  }

  std::string name_;
  spate::Process process_;
  int exit_code_ = -1;
  bool was_ended_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  if (argc > 1) {
    const Job job(*loop, argv[1], {argv + 2, argv + argc});
    loop->run();
    return job.exit_code();
  }

  const Job succeeds(*loop, "echo", {"hello"});
  const Job fails(*loop, "/bin/sh", {"-c", "echo I fail >&2; exit 3"});
  const Job is_missing(*loop, "no-such-program", {});
  Job hangs(*loop, "sleep", {"60"});
  spate::Timer patience{*loop, [&hangs] { hangs.end(); }};
  patience.start(100ms);
  loop->run();

  const bool as_expected = succeeds.exit_code() == 0 && fails.exit_code() == 3 &&
                           is_missing.exit_code() == -1 && hangs.was_ended();
  return as_expected ? 0 : 1;
}
