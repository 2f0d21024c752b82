// Open files of the simulated kernel, and notification when they become ready.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spate::sim {

class EpollSet;
class File;

// Its address identifies the class T of a file (file_cast()).
template <class T>
inline constexpr char kFileTag = 0;

// An entry of an epoll set.
struct Watch {
  int fd;
  File* file;
  EpollSet* set;
  epoll_event interest;
  std::list<Watch*>::iterator place{};  // Valid if is_queued.
  bool is_queued = false;
};

// An open file description. Functions return zero or more, or a negated errno.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File();

  // Returns the epoll events that hold now.
  virtual std::uint32_t ready() const = 0;
  virtual long read(std::span<std::byte>) { return -EINVAL; }
  virtual long write(std::span<const std::byte>) { return -EINVAL; }
  // Writes one piece after the other, until one is not written completely.
  long write_all(std::span<const iovec> pieces);

  // Returns O_RDONLY and the like, as fcntl() does.
  virtual int access() const;
  // Returns S_IFSOCK and the like, as fstat() does; 0 as of an eventfd.
  virtual mode_t file_type() const { return 0; }
  // Returns a duplicate of a real descriptor, if this has one; otherwise -1.
  virtual int open_again() const { return -1; }

  // Returns &kFileTag<T>, for a T that file_cast() can return.
  virtual const char* tag() const { return nullptr; }
  // Returns whether epoll can watch it.
  virtual bool is_pollable() const { return true; }

  // Called when its host has memory again.
  virtual void on_memory() {}

  // Must be called when ready() may have more events than before.
  void changed();

  int signal = 0;  // The one that fcntl(F_SETSIG) has chosen. None is sent.

 private:
  friend EpollSet;
  std::vector<Watch*> watches_;
};

// Returns `file` as a T, or nullptr if it is none. The library has no RTTI.
template <class T>
std::shared_ptr<T> file_cast(const std::shared_ptr<File>& file) {
  const bool is_one = file != nullptr && file->tag() == &kFileTag<T>;
  return is_one ? std::static_pointer_cast<T>(file) : nullptr;
}

// eventfd(2).
class EventCounter final : public File {
 public:
  explicit EventCounter(std::uint64_t count = 0) : count_(count) {}
  std::uint32_t ready() const override;
  long read(std::span<std::byte> room) override;
  long write(std::span<const std::byte> bytes) override;

 private:
  static constexpr std::uint64_t kMost = UINT64_MAX - 1;

  std::uint64_t count_;
};

// A timer that never expires: no clock is ever set in a World.
class QuietTimer final : public File {
 public:
  std::uint32_t ready() const override { return 0; }
  long read(std::span<std::byte>) override { return -EAGAIN; }
};

// A readable text.
class TextFile final : public File {
 public:
  explicit TextFile(std::string text) : text_(std::move(text)) {}
  std::uint32_t ready() const override { return EPOLLIN; }
  long read(std::span<std::byte> room) override;

 private:
  const std::string text_;
  std::size_t read_ = 0;
};

// Replaces an open file of a crashed host.
class DeadFile final : public File {
 public:
  std::uint32_t ready() const override { return 0; }
};

// epoll(7), level- and edge-triggered, and one-shot. Entries that may be ready are queued, and
// checked when the set is waited for.
class EpollSet final : public File {
 public:
  ~EpollSet() override;
  const char* tag() const override { return &kFileTag<EpollSet>; }
  std::uint32_t ready() const override;

  long control(int operation, int fd, File& file, epoll_event interest);
  // Copies at most `room.size()` events. Reported entries move to the end of the queue.
  std::size_t take(std::span<epoll_event> room);

 private:
  friend File;
  static std::uint32_t ready(const Watch& watch);
  void queue(Watch& watch);
  void drop(Watch& watch);
  void forget(Watch& watch);

  // By number and file: a number may be closed while a duplicate keeps its file in the set.
  std::map<int, std::vector<std::unique_ptr<Watch>>> watches_;
  std::list<Watch*> queued_;
};

}  // namespace spate::sim
