// A spate loop inside a GLib main loop.
// needs: glib-2.0
#include <glib.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

struct SpateSource {
  GSource source;
  GPollFD poll;
  spate::Loop* loop;
};

SpateSource& of(GSource* source) { return *reinterpret_cast<SpateSource*>(source); }

gboolean prepare(GSource* source, gint* timeout_ms) {
  const spate::Nanos wait = of(source).loop->prepare_to_wait();
  const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  *timeout_ms = wait >= spate::kForever ? -1 : static_cast<gint>(std::min(rounded_up, 60'000L));
  return wait == 0ns;
}

gboolean check(GSource* source) {
  const bool is_readable = (of(source).poll.revents & G_IO_IN) != 0;
  return is_readable || of(source).loop->prepare_to_wait() == 0ns;
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

struct Tally {
  GMainLoop* main_loop = g_main_loop_new(nullptr, FALSE);
  int spate_ticks = 0;
  int glib_ticks = 0;
  int posts = 0;

  void tick(spate::Timer& timer) {
    if (++spate_ticks == 5) timer.stop();
    quit_when_done();
  }
  void quit_when_done() {
    if (spate_ticks == 5 && glib_ticks >= 3 && posts == 2) g_main_loop_quit(main_loop);
  }
};

gboolean on_glib_timeout(gpointer context) {
  Tally& tally = *static_cast<Tally*>(context);
  ++tally.glib_ticks;
  tally.quit_when_done();
  return G_SOURCE_CONTINUE;
}

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create({.backend = "epoll"}));
  loop->ref();
  GSource* source = attach(*loop);

  Tally tally;
  spate::Timer timer{*loop, spate::bind<&Tally::tick>(&tally)};
  timer.start(10ms, 10ms);
  g_timeout_add(10, on_glib_timeout, &tally);
  std::jthread poster{[&] {
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(15ms);
      loop->post([&tally] { ++tally.posts, tally.quit_when_done(); });
    }
  }};

  g_main_loop_run(tally.main_loop);
  std::printf("%d ticks of spate, %d of GLib, %d posts\n", tally.spate_ticks, tally.glib_ticks,
              tally.posts);
  poster.join();
  g_source_destroy(source);
  g_source_unref(source);
  g_main_loop_unref(tally.main_loop);
  return 0;
}
