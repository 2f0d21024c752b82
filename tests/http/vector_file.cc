#include "http/vector_file.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace spate::http {

namespace {

[[noreturn]] void fail(const char* path, int line, const char* why) {
  std::fprintf(stderr, "%s:%d: %s\n", path, line, why);
  std::exit(2);
}

std::string unescaped(std::string_view text);

// Repeats the text of "1000*ab}", up to the brace that closes it. Returns the position after that.
std::size_t repeat(std::string_view text, std::string& bytes) {
  const std::size_t star = text.find('*');
  const int times = std::atoi(std::string(text.substr(0, star)).c_str());
  std::size_t end = star + 1;
  for (int depth = 1; end < text.size(); ++end) {
    if (text.substr(end, 2) == "\\{") ++depth;
    if (text[end] == '}' && --depth == 0) break;
  }
  const std::string once = unescaped(text.substr(star + 1, end - star - 1));
  for (int i = 0; i < times; ++i) bytes += once;
  return end + 1;
}

// Decodes the escape after a backslash. Returns its length.
std::size_t escape(std::string_view text, std::string& bytes) {
  switch (text.empty() ? '\0' : text[0]) {
    case 'r':
      return bytes += '\r', 1;
    case 'n':
      return bytes += '\n', 1;
    case 't':
      return bytes += '\t', 1;
    case '0':
      return bytes += '\0', 1;
    case '\\':
      return bytes += '\\', 1;
    case 'x':
      bytes += static_cast<char>(std::stoi(std::string(text.substr(1, 2)), nullptr, 16));
      return 3;
    case '{':
      return 1 + repeat(text.substr(1), bytes);
    default:
      std::fprintf(stderr, "an escape of no kind: \\%.8s\n", std::string(text).c_str());
      std::exit(2);
  }
}

std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\')
      bytes += text[at++];
    else
      at += 1 + escape(text.substr(at + 1), bytes);
  }
  return bytes;
}

void begin(Vector& vector, std::string_view title) {
  const std::size_t blank = title.find(' ');
  vector.name = title.substr(0, blank);
  if (blank != std::string_view::npos) vector.asked = title.substr(blank + 1);
}

}  // namespace

std::vector<Vector> read_vectors(const char* path) {
  std::ifstream file(path);
  if (!file) fail(path, 0, "cannot be read");
  std::vector<Vector> vectors;
  Vector vector;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = line;
    if (text.starts_with("== ")) {
      begin(vector, text.substr(3));
    } else if (text.starts_with("=> ")) {
      if (vector.name.empty() || vector.bytes.empty()) fail(path, number, "an outcome of nothing");
      vector.outcome = unescaped(text.substr(3));
      vectors.push_back(std::move(vector));
      vector = {};
    } else if (!vector.name.empty() && !text.starts_with("~ ")) {
      vector.bytes += unescaped(text);
    } else if (!text.empty() && !text.starts_with("#") && !text.starts_with("~ ")) {
      fail(path, number, "bytes of no vector");
    }
  }
  if (!vector.name.empty()) fail(path, 0, "the last vector has no outcome");
  return vectors;
}

}  // namespace spate::http
