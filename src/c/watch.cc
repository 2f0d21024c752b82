// spate_watch: a Watch and its callbacks.
#include "spate/watch.h"

#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "c/net.h"
#include "c/sized.h"
#include "spate_net.h"

using namespace spate;

static_assert(SPATE_WATCH_FILE == static_cast<int>(WatchScope::file));
static_assert(SPATE_CHANGE_MOVED == static_cast<int>(Change::moved));
static_assert(SPATE_CHANGE_UNWATCHED == static_cast<int>(Change::unwatched));

struct spate_watch {
  spate_watch() = default;
  spate_watch(const spate_watch&) = delete;
  spate_watch& operator=(const spate_watch&) = delete;
  ~spate_watch() {
    if (is_gone != nullptr) *is_gone = true;
  }

  // Each may destroy this.
  void on_events(std::span<const WatchEvent> events);
  void on_end(std::error_code error) {
    if (callbacks->on_end != nullptr) callbacks->on_end(this, c::to_code(error));
  }

  Watch watch;
  const spate_watch_callbacks* callbacks = nullptr;
  void* data = nullptr;
  bool* is_gone = nullptr;  // For the innermost on_events().
};

// The paths of the class do not end with a zero byte. The copies are local because a callback may
// destroy this.
void spate_watch::on_events(std::span<const WatchEvent> events) {
  if (callbacks->on_event == nullptr) return;
  bool gone = false;
  bool* const outer = std::exchange(is_gone, &gone);
  std::string path;
  std::string old_path;
  for (const WatchEvent& event : events) {
    path = event.path;
    old_path = event.old_path;
    const spate_watch_event shown{
        .size = sizeof(shown),
        .change = static_cast<int>(event.change),
        .is_directory = event.is_directory,
        .is_found = event.is_found,
        .error = c::to_code(event.error),
        .path = path.c_str(),
        .old_path = event.change == Change::moved ? old_path.c_str() : nullptr};
    callbacks->on_event(this, &shown);
    if (gone) {
      if (outer != nullptr) *outer = true;
      return;
    }
  }
  is_gone = outer;
}

int spate_watch_start(spate_watch** watch, spate_loop* loop, const char* path,
                      const spate_watch_callbacks* callbacks, void* data,
                      const spate_watch_options* options) {
  *watch = nullptr;
  spate_watch_options known;
  spate_watch_callbacks known_callbacks;
  if (path == nullptr || callbacks == nullptr) return -EINVAL;
  if (const int code = c::copy_sized(callbacks, known_callbacks)) return code;
  if (const int code = c::copy_sized(options, known)) return code;
  if (known.scope < SPATE_WATCH_TREE || known.scope > SPATE_WATCH_FILE) return -EINVAL;
  std::unique_ptr<spate_watch> made(new (std::nothrow) spate_watch);
  if (made == nullptr) return -ENOMEM;
  made->callbacks = callbacks;
  made->data = data;
  Result<Watch> started =
      Watch::start(loop->loop(), path,
                   [face = made.get()](const Result<std::span<const WatchEvent>>& events) {
                     events ? face->on_events(*events) : face->on_end(events.error());
                   },
                   {.scope = static_cast<WatchScope>(known.scope),
                    .existing = known.existing != 0,
                    .changed = known.without_changed == 0,
                    .attributes = known.attributes != 0});
  if (!started) return c::to_code(started.error());
  made->watch = *std::move(started);
  *watch = made.release();
  return 0;
}

void spate_watch_destroy(spate_watch* watch) { delete watch; }
void* spate_watch_data(const spate_watch* watch) { return watch->data; }
void spate_watch_pause(spate_watch* watch) { watch->watch.pause(); }
void spate_watch_resume(spate_watch* watch) { watch->watch.resume(); }
int spate_watch_is_active(const spate_watch* watch) { return watch->watch.is_active() ? 1 : 0; }
const char* spate_watch_root(const spate_watch* watch) { return watch->watch.root().data(); }

const char* spate_change_name(int change) {
  if (change < SPATE_CHANGE_CREATED || change > SPATE_CHANGE_UNWATCHED) return nullptr;
  return name_of(static_cast<Change>(change)).data();
}
