// The list of headers.
//
// Semantics: event2/http.h; probed on Debian's 2.1.12 with its security fixes: a key may be
// anything on one line, and a value may not be folded.
#include "compat/libevent/http/headers.h"

#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using spate::libevent::allocate_zeroed;
using spate::libevent::duplicate;
using spate::libevent::release;

namespace {

void free_header(evkeyval* header) {
  release(header->key);
  release(header->value);
  release(header);
}

evkeyval* find(const evkeyvalq* headers, const char* key) {
  evkeyval* header;
  TAILQ_FOREACH(header, headers, next) {
    if (spate::libevent::has_equal_text(header->key, key)) return header;
  }
  return nullptr;
}

}  // namespace

bool spate::libevent::fits_line(std::string_view text) {
  for (const char c : text) {
    if (c == '\r' || c == '\n') return false;
  }
  return true;
}

int spate::libevent::add_header(evkeyvalq& headers, std::string_view key, std::string_view value) {
  auto* header = static_cast<evkeyval*>(allocate_zeroed(sizeof(evkeyval)));
  if (header == nullptr) {
    warn("%s: calloc", "evhttp_add_header_internal");
    return -1;
  }
  header->key = duplicate(key);
  if (header->key != nullptr) header->value = duplicate(value);
  if (header->value == nullptr) {
    warn("%s: strdup", "evhttp_add_header_internal");
    free_header(header);
    return -1;
  }
  TAILQ_INSERT_TAIL(&headers, header, next);
  return 0;
}

// ---- the exported functions

const char* evhttp_find_header(const evkeyvalq* headers, const char* key) {
  const evkeyval* header = find(headers, key);
  return header != nullptr ? header->value : nullptr;
}

int evhttp_add_header(evkeyvalq* headers, const char* key, const char* value) {
  if (!spate::libevent::fits_line(key) || !spate::libevent::fits_line(value)) return -1;
  return spate::libevent::add_header(*headers, key, value);
}

int evhttp_remove_header(evkeyvalq* headers, const char* key) {
  evkeyval* header = find(headers, key);
  if (header == nullptr) return -1;
  TAILQ_REMOVE(headers, header, next);
  free_header(header);
  return 0;
}

void evhttp_clear_headers(evkeyvalq* headers) {
  while (evkeyval* header = TAILQ_FIRST(headers)) {
    TAILQ_REMOVE(headers, header, next);
    free_header(header);
  }
}
