// The file of vectors: see vectors/README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spate::http {

struct Vector {
  std::string name;
  std::string asked;  // For responses: the method of the request.
  std::string bytes;
  std::string outcome;  // With its escapes resolved.
};

// Reads a file of vectors. Ends the program at a malformed one.
std::vector<Vector> read_vectors(const char* path);

}  // namespace spate::http
