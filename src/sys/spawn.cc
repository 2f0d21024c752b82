#include "sys/spawn.h"

#include <spawn.h>
#include <sys/wait.h>

#include <vector>

#include "sys/inherited.h"
#include "sys/process.h"

namespace spate::sys {

namespace {

// Has the child close all descriptors from `first` on. Returns 0 or an errno. musl has no function
// for that, so there each is named; one that another thread opens meanwhile, without O_CLOEXEC, is
// inherited. A template, so that the name need not exist.
template <class FileActions>
int add_close_from(FileActions* actions, int first) {
  if constexpr (requires { posix_spawn_file_actions_addclosefrom_np(actions, first); }) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
  } else {
    return for_each_inherited(
        first, [actions](int fd) { return posix_spawn_file_actions_addclose(actions, fd); });
  }
}

// Returns ENOTSUP where the C library cannot do it.
template <class FileActions>
int add_change_of_directory(FileActions* actions, const char* path) {
  if constexpr (requires { posix_spawn_file_actions_addchdir_np(actions, path); }) {
    return posix_spawn_file_actions_addchdir_np(actions, path);
  } else if constexpr (requires { posix_spawn_file_actions_addchdir(actions, path); }) {
    return posix_spawn_file_actions_addchdir(actions, path);
  } else {
    return ENOTSUP;
  }
}

// Flags of posix_spawn(): one that makes the child the leader of a session, 0 where the C library
// has none, and one that closes all descriptors but those of the file actions.
#ifdef POSIX_SPAWN_SETSID
constexpr int kNewSession = POSIX_SPAWN_SETSID;
#else
constexpr int kNewSession = 0;
#endif
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
constexpr int kCloseAll = POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
constexpr int kCloseAll = 0;
#endif

// Needed where kCloseAll is not 0.
template <class FileActions>
int add_inherited(FileActions* actions, int number) {
  if constexpr (requires { posix_spawn_file_actions_addinherit_np(actions, number); }) {
    return posix_spawn_file_actions_addinherit_np(actions, number);
  } else {
    return 0;
  }
}

// The file actions of posix_spawn(), which the child performs before exec. All functions return 0
// or an errno.
class Actions {
 public:
  // The child has the descriptors from 0 to `count` - 1.
  explicit Actions(int count) : count_(count) { ::posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }

  int change_directory(const char* path) { return add_change_of_directory(&actions_, path); }
  // Adds dup2() to the child's `number`. A source that is itself one of its numbers is first moved
  // above them, because it might be overwritten before it is used.
  int assign(int number, int source) {
    if (source == SpawnRequest::kNull)
      return ::posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0);
    if (source == SpawnRequest::kInherit) return add_inherited(&actions_, number);
    if (source == SpawnRequest::kClosed)
      return ::posix_spawn_file_actions_addclose(&actions_, number);
    if (source < count_ && source != number) {
      const Descriptor& lifted = lifted_.emplace_back(duplicate(source, count_));
      if (!lifted.is_open()) return -lifted.get();
      source = lifted.get();
    }
    return ::posix_spawn_file_actions_adddup2(&actions_, source, number);
  }
  int close_others() { return kCloseAll != 0 ? 0 : add_close_from(&actions_, count_); }

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  const int count_;
  std::vector<Descriptor> lifted_;
};

class Attributes {
 public:
  explicit Attributes(const SpawnRequest& request) {
    ::posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | kCloseAll;
    if (request.new_session) {
      flags |= kNewSession;
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

// The child shares the parent's memory until exec (CLONE_VM), so nothing is copied, and the error
// of exec is returned here.
long spawn(const SpawnRequest& request) {
  if (const int error = injected(SystemCall::spawn)) return -error;
  if (request.new_session && kNewSession == 0) return -ENOTSUP;
  const int count = static_cast<int>(request.descriptors.size());
  Actions actions(count);
  int error = request.directory == nullptr ? 0 : actions.change_directory(request.directory);
  for (int i = 0; i < count && error == 0; ++i)
    error = actions.assign(i, request.descriptors[static_cast<std::size_t>(i)]);
  if (error == 0) error = actions.close_others();
  if (error != 0) return -error;
  const Attributes attributes(request);
  char* const* environment =
      request.environment == nullptr ? sys::environment() : request.environment;
  pid_t pid = -1;
  error = ::posix_spawnp(&pid, request.file, actions.get(), attributes.get(), request.arguments,
                         environment);
  return error != 0 ? -error : pid;
}

void end_child(int pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) < 0) return;
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace spate::sys
