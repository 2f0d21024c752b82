// http_vectors (requests|answers) FILE: checks the codec's result for each vector, however it is
// split. http_vectors gateway FILE: checks the bytes that an upstream receives through a gateway
// for each request. With --list: prints "name<TAB>bytes in hexadecimal<TAB>outcome" for
// differential.py.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "http/vector_file.h"
#include "http/vector_gateway.h"
#include "http/vector_reader.h"

namespace {

using namespace spate;
using namespace spate::http;

// Splits the bytes: the first piece has `first` bytes, the others `step`.
std::string outcome_of(const Vector& vector, bool is_request, std::size_t first, std::size_t step) {
  Reader reader(is_request, method_of(vector.asked));
  const std::string_view bytes = vector.bytes;
  std::size_t used = 0;
  for (std::size_t there = std::min(first, bytes.size());;) {
    used += reader.on_data(bytes.substr(used, there - used));
    if (there == bytes.size()) break;
    there += std::min(step, bytes.size() - there);
  }
  return reader.outcome(bytes.size() - used);
}

std::string printable(std::string_view text) {
  std::string made;
  for (const char c : text.substr(0, 200)) {
    char hex[8];
    std::snprintf(hex, sizeof(hex), "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    made += c < ' ' ? std::string(hex) : std::string(1, c);
  }
  return made;
}

bool is_as_said(const Vector& vector, bool is_request, std::size_t first, std::size_t step) {
  const std::string outcome = outcome_of(vector, is_request, first, step);
  if (outcome == vector.outcome) return true;
  std::printf("%s, %zu bytes first, then %zu:\n  is   %s\n  said %s\n", vector.name.c_str(), first,
              step, printable(outcome).c_str(), printable(vector.outcome).c_str());
  return false;
}

bool holds(const Vector& vector, bool is_request) {
  const std::size_t size = vector.bytes.size();
  if (!is_as_said(vector, is_request, size, size)) return false;
  if (!is_as_said(vector, is_request, 1, 1)) return false;
  // Every position of a short one; of a long one as many as the time allows.
  const std::size_t stride = size < 2000 ? 1 : size / 200;
  for (std::size_t first = 1; first < size; first += stride)
    if (!is_as_said(vector, is_request, first, size)) return false;
  return true;
}

void print_for_others(const Vector& vector) {
  std::printf("%s\t", vector.name.c_str());
  for (const char c : vector.bytes)
    std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  std::printf("\t%s\n", printable(vector.outcome).c_str());
}

}  // namespace

int main(int count, char** arguments) {
  const bool lists = count == 4 && arguments[1] == std::string_view("--list");
  if (count != 3 && !lists) {
    std::fprintf(stderr, "http_vectors [--list] (requests|answers|gateway) FILE\n");
    return 2;
  }
  const std::string_view kind = arguments[count - 2];
  const bool is_request = kind == "requests";
  const auto vectors = read_vectors(arguments[count - 1]);
  int wrong = 0;
  for (const Vector& vector : vectors) {
    if (lists)
      print_for_others(vector);
    else if (kind == "gateway")
      wrong += !holds_through_gateway(vector);
    else
      wrong += !holds(vector, is_request);
  }
  if (!lists) std::printf("%zu vectors, %d wrong\n", vectors.size(), wrong);
  return wrong == 0 ? 0 : 1;
}
