// spawn() and Process, implemented with sys::spawn() and a ChildProcess.
#include "spate/net/process.h"

#include <algorithm>
#include <cerrno>

#include "core/ownership.h"
#include "net/process/child_process.h"
#include "spate/assert.h"
#include "sys/process.h"
#include "sys/socket.h"
#include "sys/spawn.h"

namespace spate {

namespace {

enum Standard { kInput, kOutput, kErrors, kStandards };

// A standard stream of the child: its descriptor, and our end if it is a pipe.
struct End {
  int source = sys::SpawnRequest::kInherit;
  sys::Descriptor theirs;
  Stream ours;
};

std::error_code open_pipe(Loop& loop, End& end, bool child_reads) {
  int fds[2];
  if (const long result = sys::open_pipe(fds); result < 0) return sys::error_code(result);
  sys::Descriptor ours(fds[child_reads ? 1 : 0]);
  end.theirs = sys::Descriptor(fds[child_reads ? 0 : 1]);
  end.source = end.theirs.get();
  Result<Stream> stream = Stream::adopt(loop, ours.get());
  if (!stream) return stream.error();
  ours.release();
  end.ours = std::move(*stream);
  return {};
}

std::error_code open_end(Loop& loop, const Stdio& stdio, Standard standard, End (&ends)[3]) {
  End& end = ends[standard];
  switch (stdio.kind()) {
    case Stdio::Kind::inherit:
      break;
    case Stdio::Kind::null:
      end.source = sys::SpawnRequest::kNull;
      break;
    case Stdio::Kind::descriptor:
      end.source = stdio.fd();
      break;
    case Stdio::Kind::pipe:
      return open_pipe(loop, end, standard == kInput);
    case Stdio::Kind::output:
      SPATE_ASSERT(standard == kErrors);
      end.source = ends[kOutput].source;
      if (end.source == sys::SpawnRequest::kInherit)
        end.source = sys::is_inherited(kOutput) ? kOutput : sys::SpawnRequest::kClosed;
      break;
  }
  return {};
}

// A pipe that is opened later may get the number of a descriptor that is closed.
bool are_open(const Stdio (&wanted)[kStandards], const ProcessOptions& options) {
  return std::ranges::all_of(wanted,
                             [](const Stdio& stdio) {
                               return stdio.kind() != Stdio::Kind::descriptor ||
                                      sys::is_open(stdio.fd());
                             }) &&
         std::ranges::all_of(options.listening, sys::is_open) &&
         std::ranges::all_of(options.descriptors, sys::is_open);
}

// Returns the variables of the child, if they differ from the caller's.
std::optional<std::vector<std::string>> environment_of(const ProcessOptions& options) {
  if (options.listening.empty()) return options.environment;
  std::vector<std::string> variables;
  if (options.environment) {
    variables = *options.environment;
  } else {
    for (char* const* next = sys::environment(); *next != nullptr; ++next)
      variables.emplace_back(*next);
  }
  const std::string parent = std::string(sys::kListenParent) + '=';
  std::erase_if(variables, [&parent](const std::string& variable) {
    return variable.starts_with("LISTEN_PID=") || variable.starts_with("LISTEN_FDS=") ||
           variable.starts_with("LISTEN_FDNAMES=") || variable.starts_with(parent);
  });
  variables.push_back("LISTEN_FDS=" + std::to_string(options.listening.size()));
  variables.push_back(parent + std::to_string(sys::process_id()));
  return variables;
}

// Returns argv or envp for the kernel, without the final nullptr.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  return pointers;
}

long start(const ProcessOptions& options, const End (&ends)[kStandards]) {
  std::vector<char*> arguments = pointers_to(options.arguments);
  arguments.insert(arguments.begin(), const_cast<char*>(options.file.c_str()));
  arguments.push_back(nullptr);
  const std::optional<std::vector<std::string>> variables = environment_of(options);
  std::vector<char*> environment;
  if (variables) environment = pointers_to(*variables);
  environment.push_back(nullptr);
  std::vector<int> sources = {ends[kInput].source, ends[kOutput].source, ends[kErrors].source};
  sources.insert(sources.end(), options.listening.begin(), options.listening.end());
  sources.insert(sources.end(), options.descriptors.begin(), options.descriptors.end());
  return sys::spawn({
      .file = options.file.c_str(),
      .arguments = arguments.data(),
      .environment = variables ? environment.data() : nullptr,
      .directory = options.directory.empty() ? nullptr : options.directory.c_str(),
      .descriptors = sources,
      .new_group = options.new_group,
      .new_session = options.new_session,
  });
}

}  // namespace

void ChildProcessEnd::operator()(ChildProcess* process) const { process->let_go(); }

int Process::pid() const { return child_ == nullptr ? -1 : child_->pid(); }
bool Process::is_running() const { return child_ != nullptr && child_->is_running(); }
std::error_code Process::kill(int signal) {
  return child_ == nullptr ? sys::error_code(-ESRCH) : child_->kill(signal);
}

Result<Process> spawn(Loop& loop, const ProcessOptions& options, Process::OnExit callback) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  if (is_foreign(loop)) return std::unexpected(make_error_code(Error::loop_forked));
  const Stdio wanted[] = {options.input, options.output, options.errors};
  if (!are_open(wanted, options)) return std::unexpected(sys::error_code(-EBADF));
  End ends[kStandards];
  for (const Standard standard : {kInput, kOutput, kErrors}) {
    if (const auto error = open_end(loop, wanted[standard], standard, ends))
      return std::unexpected(error);
  }
  Process process;
  process.child_.reset(new ChildProcess(loop, std::move(callback), options.kill_when_destroyed));
  const long pid = start(options, ends);
  if (pid < 0) return std::unexpected(sys::error_code(pid));
  // A process that cannot be watched is killed.
  if (const auto error = process.child_->watch(static_cast<int>(pid))) {
    sys::end_child(static_cast<int>(pid));
    return std::unexpected(error);
  }
  process.input = std::move(ends[kInput].ours);
  process.output = std::move(ends[kOutput].ours);
  process.errors = std::move(ends[kErrors].ours);
  return process;
}

}  // namespace spate
