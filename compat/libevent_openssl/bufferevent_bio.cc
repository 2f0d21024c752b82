// Semantics: OpenSSL's manual (BIO_meth_new(3), BIO_should_retry(3)); probed: an output at its high
// watermark accepts no more.
#include "compat/libevent_openssl/bufferevent_bio.h"

#include <algorithm>
#include <cstring>

namespace spate::libevent {
namespace {

bufferevent* bev_of(BIO* bio) { return static_cast<bufferevent*>(BIO_get_data(bio)); }

int read(BIO* bio, char* target, int most) {
  BIO_clear_retry_flags(bio);
  evbuffer* input = bufferevent_get_input(bev_of(bio));
  if (target == nullptr) return 0;
  if (evbuffer_get_length(input) == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  return evbuffer_remove(input, target, static_cast<size_t>(most));
}

int write(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  bufferevent* bev = bev_of(bio);
  evbuffer* output = bufferevent_get_output(bev);
  size_t high = 0;
  bufferevent_getwatermark(bev, EV_WRITE, nullptr, &high);
  const size_t size = evbuffer_get_length(output);
  if (high != 0 && size >= high) {
    BIO_set_retry_write(bio);
    return -1;
  }
  auto most = static_cast<size_t>(count);
  if (high != 0) most = std::min(most, high - size);
  return evbuffer_add(output, bytes, most) == 0 ? static_cast<int>(most) : -1;
}

int put_text(BIO* bio, const char* text) {
  return write(bio, text, static_cast<int>(std::strlen(text)));
}

long control(BIO* bio, int command, long number, void*) {
  switch (command) {
    case BIO_CTRL_GET_CLOSE:
      return BIO_get_shutdown(bio);
    case BIO_CTRL_SET_CLOSE:
      BIO_set_shutdown(bio, static_cast<int>(number));
      return 1;
    case BIO_CTRL_PENDING:
      return evbuffer_get_length(bufferevent_get_input(bev_of(bio))) != 0;
    case BIO_CTRL_WPENDING:
      return evbuffer_get_length(bufferevent_get_output(bev_of(bio))) != 0;
    case BIO_CTRL_DUP:
    case BIO_CTRL_FLUSH:
      return 1;
    default:
      return 0;
  }
}

// Made once, for good.
const BIO_METHOD* method() {
  static BIO_METHOD* const made = [] {
    BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bufferevent");
    if (fresh == nullptr) return fresh;
    BIO_meth_set_read(fresh, read);
    BIO_meth_set_write(fresh, write);
    BIO_meth_set_puts(fresh, put_text);
    BIO_meth_set_ctrl(fresh, control);
    return fresh;
  }();
  return made;
}

}  // namespace

BIO* make_bufferevent_bio(bufferevent* bev) {
  const BIO_METHOD* known = method();
  BIO* bio = known != nullptr ? BIO_new(known) : nullptr;
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, bev);
  BIO_set_shutdown(bio, BIO_NOCLOSE);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace spate::libevent
