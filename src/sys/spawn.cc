#include "sys/spawn.h"

#include <spawn.h>
#include <sys/wait.h>

namespace spate::sys {

namespace {

constexpr int kStandard = 3;

// The file actions of posix_spawn(), which the child performs before exec. All functions return 0
// or an errno.
class Actions {
 public:
  Actions() { ::posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }

  int change_directory(const char* path) {
    return ::posix_spawn_file_actions_addchdir_np(&actions_, path);
  }
  // dup2() to the child's `number`. A source that is itself 0, 1 or 2 is first moved above them:
  // it might be overwritten before it is used.
  int assign(int number, int source) {
    if (source == SpawnRequest::kNull)
      return ::posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0);
    if (source == SpawnRequest::kInherit) return 0;
    if (source < kStandard && source != number) {
      lifted_[number] = Descriptor(result_of(::fcntl(source, F_DUPFD_CLOEXEC, kStandard)));
      if (!lifted_[number].is_open()) return -lifted_[number].get();
      source = lifted_[number].get();
    }
    return ::posix_spawn_file_actions_adddup2(&actions_, source, number);
  }
  int close_others() { return ::posix_spawn_file_actions_addclosefrom_np(&actions_, kStandard); }

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  Descriptor lifted_[kStandard];
};

class Attributes {
 public:
  explicit Attributes(const SpawnRequest& request) {
    ::posix_spawnattr_init(&attributes_);
    sigset_t signals;
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (request.new_session) {
      flags |= POSIX_SPAWN_SETSID;
    } else if (request.new_group) {
      flags |= POSIX_SPAWN_SETPGROUP;
    }
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

// The child shares our memory until exec (CLONE_VM), so nothing is copied, and exec's error is
// known here.
long spawn(const SpawnRequest& request) {
  if (const int error = injected(SystemCall::spawn)) return -error;
  Actions actions;
  int error = request.directory == nullptr ? 0 : actions.change_directory(request.directory);
  for (int i = 0; i < kStandard && error == 0; ++i)
    error = actions.assign(i, request.descriptors[i]);
  if (error == 0) error = actions.close_others();
  if (error != 0) return -error;
  const Attributes attributes(request);
  char* const* environment = request.environment == nullptr ? environ : request.environment;
  pid_t pid = -1;
  error = ::posix_spawnp(&pid, request.file, actions.get(), attributes.get(), request.arguments,
                         environment);
  return error != 0 ? -error : pid;
}

void end_child(int pid) {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace spate::sys
