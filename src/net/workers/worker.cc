#include "net/workers/worker.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/user_code.h"
#include "net/stream/connection.h"
#include "net/workers/team.h"
#include "sys/thread.h"

namespace spate {

void Workers::Service::leave(unsigned worker) {
  (*connections_)[worker].fetch_sub(1, std::memory_order_relaxed);
  if (limit_.leave()) team_.resume(*this);
}

// ---- Worker

Result<std::unique_ptr<Workers::Worker>> Workers::Worker::make(unsigned index,
                                                               const LoopOptions& options) {
  Result<std::unique_ptr<Loop>> loop = Loop::create(options);
  if (!loop) return std::unexpected(loop.error());
  std::unique_ptr<Worker> worker(new Worker(index));
  worker->loop_ = std::move(*loop);
  if (LoopStreams::of(*worker->loop_) == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return worker;
}

Workers::Worker::~Worker() { end(); }

void Workers::Worker::end() {
  draining_ = false;
  limit_.reset();
  acceptors_.clear();
  if (loop_ != nullptr) end_loop(*loop_);
  clients_.clear();
  connections_ = 0;
}

long Workers::Worker::start(std::string_view name, std::optional<unsigned> processor) {
  loop_->ref();
  const long result =
      thread_.start([](void* worker) { static_cast<Worker*>(worker)->run(); }, this);
  if (result < 0) return result;
  thread_.set_name(name);
  if (processor) thread_.pin(*processor);
  return 0;
}

// Runs the loop until finish(). User code may stop the loop, or drop the reference that keeps it
// running, and the wait may fail (no memory). Posts are called, and connections served,
// nevertheless.
void Workers::Worker::run() {
  current_ = this;
  while (!is_finished_) {
    if (loop_->run()) {
      sys::sleep(kRest);
    } else if (!loop_->has_work()) {
      loop_->ref();
    }
  }
  for (Clients& clients : clients_) clients.drop_host();
  has_ended_ = true;
}

// Returns how many connections only wait for their clients to close. Such a client was sent all,
// and may keep its socket open.
std::size_t Workers::Worker::lingering() const {
  std::size_t count = 0;
  const auto is_client = [](const Connection& connection) {
    return [&connection](const Clients& clients) {
      return &connection.transport().base() == &clients.transport();
    };
  };
  LoopStreams::of(*loop_)->show_all([&](const Connection& connection) {
    count += connection.is_lingering() && std::ranges::any_of(clients_, is_client(connection));
  });
  return count;
}

// Checks whether all connections have ended before the rest are reset.
void Workers::Worker::finish() {
  if (std::exchange(is_finished_, true)) return;
  has_drained_ = is_drained() || connections() == lingering();
  if (!is_drained()) for_each_host([](WorkerService& host) { host.on_end(); });
  loop_->stop_all();
}

std::error_code Workers::Worker::listen(Service& service, sys::Descriptor& socket,
                                        const ListenOptions& options,
                                        SocketAcceptor::OnSocket accept) {
  SocketAcceptor* acceptor =
      Acceptor::make<SocketAcceptor>(*loop_, socket, options, std::move(accept));
  if (acceptor == nullptr) return sys::error_code(-ENOMEM);
  acceptors_.emplace_back(&service, std::unique_ptr<SocketAcceptor, Abandon>(acceptor));
  if (service.rests_on()) acceptor->pause();
  return {};
}

void Workers::Worker::stop_listening(bool serves_backlog) {
  for (const ServiceAcceptor& post : acceptors_) {
    if (serves_backlog && !post.service->rests_on()) post.acceptor->finish();
  }
  acceptors_.clear();
}

void Workers::Worker::stop_listening(const Service& service, bool serves_backlog) {
  const auto post = std::ranges::find(acceptors_, &service, &ServiceAcceptor::service);
  if (post == acceptors_.end()) return;
  if (serves_backlog && !post->service->rests_on()) post->acceptor->finish();
  acceptors_.erase(post);
}

SocketAcceptor* Workers::Worker::acceptor_of(const Service& service) {
  const auto post = std::ranges::find(acceptors_, &service, &ServiceAcceptor::service);
  return post == acceptors_.end() ? nullptr : post->acceptor.get();
}

void Workers::Worker::pause(Service& service) {
  if (SocketAcceptor* acceptor = acceptor_of(service)) acceptor->pause();
}

void Workers::Worker::resume(Service& service) {
  if (service.rests_on()) return;
  if (SocketAcceptor* acceptor = acceptor_of(service)) acceptor->resume();
}

// nullptr when memory ran out.
Workers::Worker::Clients* Workers::Worker::clients_of(Service& service) {
  for (Clients& clients : clients_) {
    if (clients.belong_to(service)) return &clients;
  }
  Clients& clients = clients_.emplace_back(*this, service, *LoopStreams::of(*loop_));
  if (clients.is_complete()) return &clients;
  clients_.pop_back();
  return nullptr;
}

void Workers::Worker::take(Service& service, sys::Descriptor socket, const Address& peer) {
  Clients* clients = clients_of(service);
  Connection* connection = clients == nullptr ? nullptr : clients->transport().adopt(socket);
  if (connection == nullptr) return leave(service);
  Stream stream = Connection::stream_of(connection);
  call_user("Workers", [&] { clients->host()->on_accept(std::move(stream), peer); });
}

void Workers::Worker::leave(Service& service) {
  const bool was_last = connections_.fetch_sub(1) == 1;
  service.leave(index_);
  if (was_last && draining_) finish();
}

void Workers::Worker::lose_one(Service& service) {
  connections_.fetch_sub(1);
  service.leave(index_);
}

void Workers::Worker::drain(Nanos grace, const OnLoop& on_drain) {
  draining_ = true;
  if (grace > Nanos{0}) {
    for_each_host([grace](WorkerService& host) { host.on_drain(grace); });
    if (on_drain) call_user("Workers", [&] { on_drain(*loop_); });
  }
  if (is_drained() || grace <= Nanos{0}) return finish();
  limit_.emplace(*loop_, [this] { finish(); });
  if (!limit_->start(grace)) finish();
}

}  // namespace spate
