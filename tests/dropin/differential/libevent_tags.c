// Tagged data: the encoding, and the decoding of good, bad and random bytes.
//
// differential: --seeds 1:500
#include <event2/buffer.h>
#include <event2/tag.h>
#include <sys/time.h>

#include "libevent_cases.h"

enum { kBytes = 24 };

static void show_bytes(const char* what, struct evbuffer* buffer) {
  unsigned char bytes[256];
  const ev_ssize_t size = evbuffer_copyout(buffer, bytes, sizeof bytes);
  printf("%s:", what);
  for (ev_ssize_t i = 0; i < size; i++) printf(" %02x", bytes[i]);
  printf("\n");
}

static ev_uint64_t some_number(void) { return random_next() >> random_below(64); }

static struct evbuffer* written;

static void write_something(void) {
  const ev_uint32_t tag = random_chance(60) ? 1 : (ev_uint32_t)some_number();
  char text[kBytes] = "some text to be written";
  struct timeval time = {(time_t)(some_number() & 0xffffffff), random_below(1000000)};
  struct evbuffer* payload = evbuffer_new();
  text[random_below(kBytes)] = '\0';
  evbuffer_add(payload, text, strlen(text));
  switch (random_below(7)) {
    case 0:
      evtag_encode_int(written, (ev_uint32_t)some_number());
      break;
    case 1:
      evtag_encode_int64(written, some_number());
      break;
    case 2:
      evtag_marshal(written, tag, text, (ev_uint32_t)random_below(kBytes));
      break;
    case 3:
      evtag_marshal_int(written, tag, (ev_uint32_t)some_number());
      break;
    case 4:
      evtag_marshal_int64(written, tag, some_number());
      break;
    case 5:
      evtag_marshal_string(written, tag, text);
      break;
    default:
      evtag_marshal_timeval(written, tag, &time);
  }
  if (random_chance(20)) evtag_marshal_buffer(written, tag, payload);
  evbuffer_free(payload);
}

// Returns encoded bytes, truncated or changed ones, or random ones.
static struct evbuffer* something(void) {
  unsigned char bytes[kBytes * 8];
  written = evbuffer_new();
  for (int i = random_below(3); i >= 0; i--) write_something();
  const int how = random_below(4);
  int size = evbuffer_remove(written, bytes, sizeof bytes);
  if (how == 1) size = random_below(size + 1);
  if (how == 2 && size > 0) bytes[random_below(size)] = (unsigned char)random_below(256);
  if (how == 3) {
    size = random_below(kBytes);
    bytes[0] = 1;
    for (int i = 1; i < size; i++) {
      bytes[i] = (unsigned char)(random_chance(50) ? random_below(8) : random_below(256));
    }
  }
  for (int i = 0; i < size; i++) {
    if (random_chance(80)) {
      evbuffer_add(written, bytes + i, 1);
    } else {
      struct evbuffer* one = evbuffer_new();  // Makes the bytes not contiguous.
      evbuffer_add(one, bytes + i, 1);
      evbuffer_add_buffer(written, one);
      evbuffer_free(one);
    }
  }
  return written;
}

static void read_one(struct evbuffer* buffer) {
  ev_uint32_t tag = 99;
  ev_uint32_t number = 99;
  ev_uint64_t large = 99;
  struct timeval time = {9, 9};
  char fixed[4] = "...";
  char* text = NULL;
  struct evbuffer* target = evbuffer_new();
  switch (random_below(8)) {
    case 0:
      show("header", evtag_unmarshal_header(buffer, &tag));
      break;
    case 1:
      show("unmarshal", evtag_unmarshal(buffer, &tag, target));
      show_bytes("target", target);
      break;
    case 2:
      show("consume", evtag_consume(buffer));
      break;
    case 3:
      show("int", evtag_unmarshal_int(buffer, 1, &number));
      show("it", number);
      break;
    case 4:
      show("int64", evtag_unmarshal_int64(buffer, 1, &large));
      show("it", (long)large);
      break;
    case 5:
      show("fixed", evtag_unmarshal_fixed(buffer, 1, fixed, 3));
      show_text("it", fixed);
      break;
    case 6:
      show("string", evtag_unmarshal_string(buffer, 1, &text));
      show_text("it", text);
      free(text);
      break;
    default:
      show("timeval", evtag_unmarshal_timeval(buffer, 1, &time));
      printf("it: %ld.%ld\n", (long)time.tv_sec, (long)time.tv_usec);
  }
  show("tag", tag);
  evbuffer_free(target);
}

static void run_script(void) {
  evtag_init();
  for (int round = 0; round < 20; round++) {
    struct evbuffer* buffer = something();
    ev_uint32_t tag = 99;
    ev_uint32_t length = 99;
    show_bytes("bytes", buffer);
    show("peek", evtag_peek(buffer, &tag));
    show("tag", tag);
    show("peek_length", evtag_peek_length(buffer, &length));
    show("length", length);
    show("payload_length", evtag_payload_length(buffer, &length));
    show("length", length);
    for (int i = 0; i < 3; i++) read_one(buffer);
    show_bytes("left", buffer);
    evbuffer_free(buffer);
  }
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
