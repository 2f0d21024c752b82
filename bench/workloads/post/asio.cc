// Standalone Asio: one io_context for each thread; its concurrency hint says that one thread runs
// it.
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/version.hpp>

#include "post.h"

class AsioLoop {
 public:
  template <class F>
  void post(F&& task) {
    asio::post(context_, std::forward<F>(task));
  }

  void run() { context_.run(); }
  void stop() { context_.stop(); }

  static void version() {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ASIO_VERSION / 100000,
             ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100);
    bench_version(version, nullptr);
  }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
};

int main(int argc, char** argv) { return PostPrograms<AsioLoop>::main(argc, argv); }
