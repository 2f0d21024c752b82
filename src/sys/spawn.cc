#include "sys/spawn.h"

#include <spawn.h>
#include <sys/wait.h>

namespace spate::sys {

namespace {

constexpr int kStandard = 3;

// What is done in the child before the program is: a list that posix_spawn() works off. All
// functions answer 0 or an errno.
class Actions {
 public:
  Actions() { ::posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }

  int change_directory(const char* path) {
    return ::posix_spawn_file_actions_addchdir_np(&actions_, path);
  }
  // Makes `source` the child's `number`. What bears one of the three numbers is lifted above them
  // first: another one might have taken its place.
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

// The C library makes the child share our memory until it runs the program, so that nothing is
// copied and the failure of exec is known here.
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
