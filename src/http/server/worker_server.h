// WorkerServer: the server of one worker. Used on the worker's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "http/server/server_core.h"
#include "spate/http/server.h"
#include "spate/net/workers_server.h"

namespace spate::http {

class WorkersServerState;

// It has a ServerCore for each version of the options that an open connection uses.
class WorkerServer final : public DrainableService {
 public:
  WorkerServer(Loop& loop, unsigned worker, std::shared_ptr<WorkersServerState> state,
               std::unique_ptr<Service> service);
  ~WorkerServer() override;

  void on_accept(Stream stream, const Address& peer) override;
  void on_drain(Nanos grace) override;
  void on_end() override;
  void drain(Nanos grace, const DrainTicket& ticket) override;

 private:
  void renew();

  Loop& loop_;
  const unsigned worker_;
  const std::shared_ptr<WorkersServerState> state_;
  const std::unique_ptr<Service> service_;
  // Destroyed before the Service. The last one has the current options.
  std::vector<std::unique_ptr<ServerCore>> cores_;
  std::uint64_t version_ = 0;  // The version of the current options; 0 without a ServerCore.
};

}  // namespace spate::http
