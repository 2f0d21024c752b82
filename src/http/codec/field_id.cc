#include "spate/http/field_id.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "http/codec/characters.h"
#include "http/codec/field_hash.h"

namespace spate::http {

namespace {

// Both in lower case but for names, whose letters may be capitals. Exact where `known` consists of
// letters, digits and "-", and `name` is a token.
bool is_known_name(const char* known, const char* name, std::size_t size) {
  std::size_t i = 0;
  for (; i + sizeof(std::uint32_t) <= size; i += sizeof(std::uint32_t)) {
    std::uint32_t a;
    std::uint32_t b;
    std::memcpy(&a, known + i, sizeof(a));
    std::memcpy(&b, name + i, sizeof(b));
    if (a != (b | 0x20202020)) return false;
  }
  for (; i < size; ++i)
    if (known[i] != (name[i] | 0x20)) return false;
  return true;
}

}  // namespace

std::string_view name_of(FieldId id) {
  return id == FieldId::other ? std::string_view() : kFieldNames[static_cast<std::size_t>(id)];
}

FieldId token_id_of(std::string_view token) {
  if (token.size() < kShortestFieldName || token.size() > kLongestFieldName) return FieldId::other;
  const FieldSlot& slot = kFieldTable[field_hash(token)];
  if (slot.size != token.size()) return FieldId::other;
  return is_known_name(slot.lower, token.data(), token.size()) ? slot.id : FieldId::other;
}

FieldId field_id_of(std::string_view name) {
  return consists_of(name, kToken) ? token_id_of(name) : FieldId::other;
}

}  // namespace spate::http
