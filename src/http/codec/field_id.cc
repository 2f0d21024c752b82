#include "spate/http/field_id.h"

#include "http/codec/characters.h"
#include "http/codec/field_hash.h"

namespace spate::http {

std::string_view name_of(FieldId id) {
  return id == FieldId::other ? std::string_view() : kFieldNames[static_cast<std::size_t>(id)];
}

FieldId field_id_of(std::string_view name) {
  if (!consists_of(name, kToken)) return FieldId::other;
  return token_id_of(name.data(), name.size(), name.data() + name.size());
}

}  // namespace spate::http
