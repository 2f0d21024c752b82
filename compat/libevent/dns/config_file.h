// The files that a resolver is set up from, and their words.
#pragma once

#include <string_view>

namespace spate::libevent::dns {

// A file of any length, in memory.
class ConfigFile {
 public:
  enum class Result { is_read, cannot_open, cannot_read, no_memory };

  ConfigFile() = default;
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  ~ConfigFile();

  Result read(const char* path);
  std::string_view text() const { return {text_, size_}; }

 private:
  Result read_from(int fd);

  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

std::string_view take_line(std::string_view& text);
// Empty if there is no other. Only blanks and tabs part words.
std::string_view take_word(std::string_view& line);

// A word as a string, empty if it is too long for whatever these files have words for.
class Word {
 public:
  explicit Word(std::string_view word);
  const char* c_str() const { return text_; }

 private:
  char text_[256];
};

}  // namespace spate::libevent::dns
