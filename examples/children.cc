// Runs shell commands concurrently, prints their lines as they arrive, and each exit status.
//   children 'ping -c 3 localhost' 'sleep 1; echo done' 'exit 3'
#include <iostream>
#include <list>
#include <string>

#include "spate/net/framing.h"
#include "spate/net/process.h"

namespace {

class Job final : public spate::StreamHandler {
 public:
  Job(spate::Loop& loop, const std::string& command) : command_(command) {
    process_ = spate::must(spawn(loop,
                                 {.file = "/bin/sh",
                                  .arguments = {"-c", command},
                                  .output = spate::Stdio::pipe(),
                                  .errors = spate::Stdio::output()},
                                 [this](const spate::Child& child) { on_exit(child); }));
    process_.output.start(*this);
  }
  bool succeeded() const { return succeeded_; }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    const auto lines = split(bytes, spate::Delimiter{}, [&](spate::Bytes line) { print(line); });
    return lines.broken ? bytes.size() : lines.used;
  }
  void on_end() override {
    const spate::Bytes rest = process_.output.unread();
    if (!rest.empty()) print(rest);
  }
  void on_closed(std::error_code) override {}

  void on_exit(const spate::Child& child) {
    succeeded_ = child.exited() && child.exit_code() == 0;
    print(child.exited() ? "exit code " + std::to_string(child.exit_code())
                         : "signal " + std::to_string(child.term_signal()));
  }
  void print(spate::Bytes line) const { print(spate::text_of(line)); }
  void print(std::string_view line) const { std::cout << command_ << ": " << line << std::endl; }

  const std::string command_;
  spate::Process process_;
  bool succeeded_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: children COMMAND...\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  std::list<Job> jobs;
  for (int i = 1; i < argc; ++i) jobs.emplace_back(*loop, argv[i]);
  loop->run();

  bool all_succeeded = true;
  for (const Job& job : jobs) all_succeeded &= job.succeeded();
  return all_succeeded ? 0 : 1;
}
