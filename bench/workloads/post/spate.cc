// spate: post(), on a loop that a reference keeps running.
#include <spate/loop.h>

#include "post.h"

class SpateLoop {
 public:
  SpateLoop() { loop_->ref(); }

  template <class F>
  void post(F&& task) {
    loop_->post(std::forward<F>(task));
  }

  void run() { loop_->run(); }
  void stop() {
    loop_->post([this] { loop_->stop(); });
  }

  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_ = spate::Loop::create().value();
};

int main(int argc, char** argv) { return PostPrograms<SpateLoop>::main(argc, argv); }
