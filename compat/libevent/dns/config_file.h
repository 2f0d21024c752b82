// The resolver's configuration files, and their words.
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
// Returns an empty word at the end. Only blanks and tabs separate words.
std::string_view take_word(std::string_view& line);

// Returns a word as a string, empty if it is longer than any word of these files.
class Word {
 public:
  explicit Word(std::string_view word);
  const char* c_str() const { return text_; }

 private:
  char text_[256];
};

}  // namespace spate::libevent::dns
