// The parts of Workers that each thread has: the Service of a listen(), and the Worker of a thread.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/user_code.h"
#include "net/listen/acceptor.h"
#include "net/listen/shared_limit.h"
#include "net/stream/counted_transport.h"
#include "net/stream/loop_streams.h"
#include "spate/function.h"
#include "spate/net/workers.h"
#include "spate/timer.h"
#include "sys/thread.h"

namespace spate {

// An Acceptor that passes each connection to a worker, which counts it.
class SocketAcceptor final : public Acceptor {
 public:
  using OnSocket = Function<void(sys::Descriptor socket, const Address& peer)>;

 private:
  friend class Acceptor;

  SocketAcceptor(LoopStreams& loop_state, sys::Descriptor socket, const ListenOptions& options,
                 OnSocket on_socket)
      : Acceptor(loop_state, std::move(socket), options), on_socket_(std::move(on_socket)) {}

  bool is_full() const override { return false; }
  bool hand_over(sys::Descriptor& socket, const Address& peer) override {
    on_socket_(std::move(socket), peer);
    return true;
  }

  OnSocket on_socket_;
};

// One listen(), shared by all workers. Its connections are counted on any thread.
class Workers::Service {
 public:
  Service(Team& team, MakeService make, std::size_t max, std::size_t workers)
      : team_(team),
        connections_(std::make_shared<WorkersListener::Counts>(workers)),
        make_(std::move(make)),
        limit_(max) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() {
    for (auto& each : *connections_) each.store(0, std::memory_order_relaxed);
  }

  std::unique_ptr<WorkerService> make(Loop& loop) const {
    return call_user("Workers", [&] { return make_(loop); });
  }
  // Counts a connection that is being passed to a worker. True if accepting must pause now.
  bool enter() { return limit_.enter(); }
  // Counts a connection of a worker until leave().
  void add(unsigned worker) { (*connections_)[worker].fetch_add(1, std::memory_order_relaxed); }
  void leave(unsigned worker);
  std::shared_ptr<const WorkersListener::Counts> connections() const { return connections_; }
  // Returns whether there is still no room; then a later leave() resumes accepting.
  bool rests_on() { return limit_.rests_on(); }

 private:
  Team& team_;
  const std::shared_ptr<WorkersListener::Counts> connections_;  // By worker.
  const MakeService make_;
  SharedLimit limit_;
};

// One thread and its loop. All members except atomics are used on that thread while it runs.
class Workers::Worker {
 public:
  static Result<std::unique_ptr<Worker>> make(unsigned index, const LoopOptions& options);
  ~Worker();

  long start(std::string_view name, std::optional<unsigned> processor);
  Loop& loop() const { return *loop_; }
  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  // Any thread. False when memory runs out, or after the thread has ended.
  bool post(Job task) { return !has_ended_.load() && loop_->post(std::move(task)); }
  // As post(), and waits for memory. Drops the task after the thread has ended.
  void post_insisting(const std::function<void()>& task) {
    while (!has_ended_.load() && !loop_->post(task)) sys::yield();
  }
  // Returns whether this is the calling thread.
  bool is_calling() const { return current_ == this; }

  // Accepts, and passes each connection to a worker. Takes ownership of `socket`, unless it fails.
  std::error_code listen(Service& service, sys::Descriptor& socket, const ListenOptions& options,
                         SocketAcceptor::OnSocket accept);
  void pause(Service& service);
  void resume(Service& service);
  // Counts a connection that is being passed to this worker.
  void expect_one(Service& service) {
    connections_.fetch_add(1, std::memory_order_relaxed);
    service.add(index_);
  }
  void take(Service& service, sys::Descriptor socket, const Address& peer);
  void leave(Service& service);
  // Undoes expect_one() if the hand-off fails. Any thread.
  void lose_one(Service& service);

  // With `serves_backlog`, accepts the connections in the backlog first.
  void stop_listening(bool serves_backlog);
  void stop_listening(const Service& service, bool serves_backlog);
  void drain(Nanos grace, const OnLoop& on_drain);
  void join() { thread_.join(); }
  // Called after join(): closes the remaining objects. The loop is kept.
  void end();
  bool is_drained() const { return connections() == 0; }
  std::size_t lingering() const;
  // Returns whether all connections had ended when the loop ended.
  bool has_drained() const { return has_drained_; }

 private:
  // A service on this worker, and the number of its connections.
  class Clients final : private CountedTransport::Watcher {
   public:
    Clients(Worker& worker, Service& service, LoopStreams& loop_state)
        : worker_(worker),
          service_(service),
          transport_(new(std::nothrow) CountedTransport(loop_state, *this)),
          host_(service.make(loop_state.loop())) {}
    ~Clients() {
      if (transport_ != nullptr) transport_->abandon();
    }
    bool belong_to(const Service& service) const { return &service_ == &service; }
    bool is_complete() const { return transport_ != nullptr && host_ != nullptr; }
    CountedTransport& transport() const { return *transport_; }
    WorkerService* host() const { return host_.get(); }
    void drop_host() { host_.reset(); }

   private:
    void on_left(Connection&) override { worker_.leave(service_); }

    Worker& worker_;
    Service& service_;
    CountedTransport* transport_;  // Outlives this object if a Stream does.
    std::unique_ptr<WorkerService> host_;
  };
  struct Abandon {
    void operator()(SocketAcceptor* acceptor) const { acceptor->abandon(); }
  };
  struct ServiceAcceptor {
    Service* service;
    std::unique_ptr<SocketAcceptor, Abandon> acceptor;
  };

  // How long the thread sleeps after a failed wait, because the next one may fail at once.
  static constexpr Nanos kRest{10'000'000};
  static inline thread_local const Worker* current_ = nullptr;

  explicit Worker(unsigned index) : index_(index) {}
  void run();
  void finish();
  template <class Function>
  void for_each_host(Function function) {
    for (Clients& clients : clients_) call_user("Workers", [&] { function(*clients.host()); });
  }
  Clients* clients_of(Service& service);
  SocketAcceptor* acceptor_of(const Service& service);

  const unsigned index_;
  std::unique_ptr<Loop> loop_;
  sys::Thread thread_;
  std::list<Clients> clients_;
  std::list<ServiceAcceptor> acceptors_;
  std::optional<Timer> limit_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<bool> has_ended_{false};
  bool draining_ = false;
  bool is_finished_ = false;
  bool has_drained_ = false;
};

}  // namespace spate
