// What is written: lines of text into a buffer.
#pragma once

#include <string_view>

#include "compat/libevent/http/message.h"

namespace spate::libevent {

template <class... Texts>
void add_text(evbuffer* target, const Texts&... texts) {
  const std::string_view views[] = {texts...};
  for (const std::string_view text : views) evbuffer_add(target, text.data(), text.size());
}

void add_version(evbuffer* target, Version version);
// With the empty line behind them.
void add_headers(evbuffer* target, const evkeyvalq& headers);

}  // namespace spate::libevent
