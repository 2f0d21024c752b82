// An echo server on a spate loop inside a GLib main loop.
//   embed_glib 7000          talk to it: nc localhost 7000
// needs: glib-2.0
#include <glib-unix.h>
#include <glib.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <iostream>

#include "spate/net/server.h"

namespace {

struct Echo : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

struct SpateSource {
  GSource source;
  GPollFD poll;
  spate::Loop* loop;
};

SpateSource& of(GSource* source) { return *reinterpret_cast<SpateSource*>(source); }

gboolean prepare(GSource* source, gint* timeout_ms) {
  const spate::Nanos wait = of(source).loop->prepare_to_wait();
  const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  *timeout_ms =
      wait >= spate::kForever ? -1 : static_cast<gint>(std::min<std::int64_t>(rounded_up, 60'000));
  return wait == spate::Nanos{0};
}

gboolean check(GSource* source) {
  const bool is_readable = (of(source).poll.revents & G_IO_IN) != 0;
  return is_readable || of(source).loop->prepare_to_wait() == spate::Nanos{0};
}

gboolean dispatch(GSource* source, GSourceFunc, gpointer) {
  return of(source).loop->run(spate::Run::no_wait) ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

GSource* attach(spate::Loop& loop) {
  static GSourceFuncs functions{prepare, check, dispatch, nullptr, nullptr, nullptr};
  GSource* source = g_source_new(&functions, sizeof(SpateSource));
  of(source).loop = &loop;
  of(source).poll = {.fd = spate::must(loop.poll_fd()), .events = G_IO_IN, .revents = 0};
  g_source_add_poll(source, &of(source).poll);
  g_source_attach(source, nullptr);
  return source;
}

gboolean quit(gpointer main_loop) {
  g_main_loop_quit(static_cast<GMainLoop*>(main_loop));
  return G_SOURCE_REMOVE;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: embed_glib [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create({.backend = "epoll"}));
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  auto server = spate::must(spate::serve<Echo>(*loop, address));

  GMainLoop* main_loop = g_main_loop_new(nullptr, FALSE);
  GSource* source = attach(*loop);
  g_unix_signal_add(SIGTERM, quit, main_loop);
  std::cout << server.address().to_string() << std::endl;
  g_main_loop_run(main_loop);
  g_source_destroy(source);
  g_source_unref(source);
  g_main_loop_unref(main_loop);
}
