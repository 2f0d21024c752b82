#include "compat/libevent/dns/config_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "compat/libevent/memory.h"

namespace spate::libevent::dns {

ConfigFile::~ConfigFile() { release(text_); }

ConfigFile::Result ConfigFile::read(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Result::cannot_open;
  const Result result = read_from(fd);
  close(fd);
  return result;
}

ConfigFile::Result ConfigFile::read_from(int fd) {
  for (;;) {
    if (size_ == room_) {
      const std::size_t more = std::max<std::size_t>(4096, 2 * room_);
      void* larger = reallocate(text_, more);
      if (larger == nullptr) return Result::no_memory;
      text_ = static_cast<char*>(larger);
      room_ = more;
    }
    const ssize_t got = ::read(fd, text_ + size_, room_ - size_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Result::cannot_read;
    if (got == 0) return Result::is_read;
    size_ += static_cast<std::size_t>(got);
  }
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

Word::Word(std::string_view word) {
  const std::size_t size = word.size() < sizeof text_ ? word.size() : 0;
  *std::ranges::copy(word.substr(0, size), text_).out = '\0';
}

}  // namespace spate::libevent::dns
