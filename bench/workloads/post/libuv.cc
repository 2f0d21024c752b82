// libuv: uv_async_send wakes the loop and merges; the queue is the user's, a mutex and a vector
// that is swapped out in the callback, as its users write it.
#include <uv.h>

#include <functional>
#include <mutex>

#include "post.h"

class LibuvLoop {
 public:
  LibuvLoop() {
    uv_loop_init(&loop_);
    uv_async_init(&loop_, &async_, [](uv_async_t* async) {
      static_cast<LibuvLoop*>(async->data)->drain();
    });
    async_.data = this;
  }

  ~LibuvLoop() { uv_loop_close(&loop_); }

  LibuvLoop(const LibuvLoop&) = delete;
  LibuvLoop& operator=(const LibuvLoop&) = delete;

  void post(std::function<void()> task) {
    bool first;
    {
      const std::lock_guard lock(mutex_);
      first = tasks_.empty();
      tasks_.push_back(std::move(task));
    }
    if (first) uv_async_send(&async_);
  }

  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

  void stop() {
    post([this] { uv_close(reinterpret_cast<uv_handle_t*>(&async_), nullptr); });
  }

  static void version() { bench_version(uv_version_string(), "libuv.so"); }

 private:
  void drain() {
    running_.clear();
    {
      const std::lock_guard lock(mutex_);
      running_.swap(tasks_);
    }
    for (auto& task : running_) task();
  }

  uv_loop_t loop_;
  uv_async_t async_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_, running_;
};

int main(int argc, char** argv) { return PostPrograms<LibuvLoop>::main(argc, argv); }
