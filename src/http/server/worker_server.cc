#include "http/server/worker_server.h"

#include <new>
#include <utility>

#include "http/server/workers_server_state.h"

namespace spate::http {

WorkerServer::WorkerServer(Loop& loop, unsigned worker, std::shared_ptr<WorkersServerState> state,
                           std::unique_ptr<Service> service)
    : loop_(loop), worker_(worker), state_(std::move(state)), service_(std::move(service)) {}

WorkerServer::~WorkerServer() {
  while (!cores_.empty()) {
    state_->remove(worker_, cores_.back()->counters());
    cores_.pop_back();
  }
}

void WorkerServer::on_accept(Stream stream, const Address& peer) {
  if (state_->version() != version_) renew();
  if (!cores_.empty()) cores_.back()->accept(std::move(stream), peer);
}

// Keeps the previous options when memory runs out, and tries again with the next connection.
void WorkerServer::renew() {
  std::erase_if(cores_, [this](const std::unique_ptr<ServerCore>& core) {
    if (!core->is_idle()) return false;
    state_->remove(worker_, core->counters());
    return true;
  });
  const std::uint64_t version = state_->version();
  auto core = ServerCore::create(loop_, service_.get(), {}, *state_->options());
  if (!core) return;
  state_->add(worker_, (*core)->counters());
  cores_.push_back(std::move(*core));
  version_ = version;
}

void WorkerServer::drain(Nanos grace, const DrainTicket& ticket) {
  for (const auto& core : cores_) core->drain(grace, [ticket] {});
}

// The worker enforces the grace.
void WorkerServer::on_drain(Nanos grace) {
  for (const auto& core : cores_) core->drain(kForever, grace / 2, {});
}

void WorkerServer::on_end() {
  for (const auto& core : cores_) core->abort_all(Error::deadline);
}

}  // namespace spate::http
