// The Huffman code of HPACK (RFC 7541 §5.2, appendix B).
#pragma once

#include <cstddef>
#include <string_view>

namespace spate::http {

// Returns how many bytes huffman_encode() writes.
std::size_t huffman_size(std::string_view text);
// Writes the coded text. Returns the end of the output.
char* huffman_encode(std::string_view text, char* target);

// Returns how many bytes huffman_decode() writes at most.
constexpr std::size_t huffman_room(std::size_t coded) { return coded * 8 / 5; }
// Writes the decoded text. Returns the end of the output, or nullptr if the code is invalid.
char* huffman_decode(std::string_view coded, char* target);

}  // namespace spate::http
