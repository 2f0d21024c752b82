// The file of vectors: see vectors/README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spate::http {

struct Vector {
  std::string name;
  std::string asked;  // Of answers: the method of the request.
  std::string bytes;
  std::string outcome;  // With its escapes resolved.
};

// Ends the program at what it cannot read.
std::vector<Vector> read_vectors(const char* path);

}  // namespace spate::http
