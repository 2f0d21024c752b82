// The server that reliability.py drives. Prints its two addresses: HTTP's, and that of a bare
// Stream that counts its input and sends the count at the end.
//   GET  /        hello
//   GET  /long    100 MiB, as the client takes them
//   POST /upload  how long the body was
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "spate/http/router.h"
#include "spate/net/server.h"

using namespace std::chrono_literals;
using spate::http::Exchange;
using spate::http::Status;

namespace {

constexpr std::uint64_t kLong = 100 * 1024 * 1024;

class Job : public spate::http::ExchangeHandler {
 public:
  virtual ~Job() = default;
};

// Each until its exchange is closed.
class Jobs {
 public:
  void add(std::unique_ptr<Job> job) { jobs_[job.get()] = std::move(job); }
  void remove(Job* job) { jobs_.erase(job); }

 private:
  std::unordered_map<Job*, std::unique_ptr<Job>> jobs_;
};

class Sending final : public Job {
 public:
  Sending(Jobs& jobs, Exchange exchange) : jobs_(jobs), exchange_(std::move(exchange)) {
    exchange_.begin(Status::ok, {}, kLong);
    exchange_.start(*this);
    on_drained();
  }
  void on_drained() override {
    static const std::string piece(16 * 1024, 'x');
    while (left_ > 0 && !exchange_.is_full() && exchange_.write(piece)) left_ -= piece.size();
    if (left_ == 0) exchange_.end();
  }
  void on_closed(std::error_code) override { jobs_.remove(this); }

 private:
  Jobs& jobs_;
  Exchange exchange_;
  std::uint64_t left_ = kLong;
};

class Receiving final : public Job {
 public:
  Receiving(Jobs& jobs, Exchange exchange) : jobs_(jobs), exchange_(std::move(exchange)) {
    exchange_.start(*this);
  }
  void on_body(spate::Bytes bytes) override { size_ += bytes.size(); }
  void on_body_end(const spate::http::FieldsView&) override {
    exchange_.respond(std::to_string(size_));
  }
  void on_closed(std::error_code) override { jobs_.remove(this); }

 private:
  Jobs& jobs_;
  Exchange exchange_;
  std::uint64_t size_ = 0;
};

struct Counting : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    size += bytes.size();
    return bytes.size();
  }
  void on_end() override { stream().write(std::to_string(size)); }
  std::uint64_t size = 0;
};

}  // namespace

int main() {
  auto loop = spate::must(spate::Loop::create());
  Jobs jobs;
  spate::http::Router router;
  router.get("/", [](Exchange exchange) { exchange.respond("hello\n"); });
  router.get("/long", [&](Exchange exchange) {
    jobs.add(std::make_unique<Sending>(jobs, std::move(exchange)));
  });
  router.post("/upload", [&](Exchange exchange) {
    jobs.add(std::make_unique<Receiving>(jobs, std::move(exchange)));
  });
  const auto any_port = spate::Address::loopback_ipv4(0);
  auto server = spate::must(spate::http::serve(*loop, any_port, router));
  auto bare = spate::must(spate::serve<Counting>(*loop, any_port));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(10s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl << bare.address().to_string() << std::endl;
  loop->run();
}
