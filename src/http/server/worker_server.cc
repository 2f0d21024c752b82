// serve() on Workers: a ServerCore in each.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/server_core.h"
#include "spate/http/server.h"
#include "spate/net/workers.h"

namespace spate::http {

namespace {

class WorkerServer final : public WorkerService {
 public:
  WorkerServer(std::unique_ptr<Service> service, std::unique_ptr<ServerCore> core)
      : service_(std::move(service)), core_(std::move(core)) {}

  void on_accept(Stream stream, const Address& peer) override {
    core_->accept(std::move(stream), peer);
  }
  void on_drain(Nanos) override { core_->drain(kForever, {}); }  // The worker watches the grace.
  void on_end() override { core_->abort_all(Error::deadline); }

 private:
  std::unique_ptr<Service> service_;
  std::unique_ptr<ServerCore> core_;  // Goes first.
};

std::unique_ptr<WorkerService> make_server(Loop& loop, const MakeService& make,
                                           const ServerOptions& options) {
  std::unique_ptr<Service> service = make(loop);
  if (service == nullptr) return nullptr;
  auto core = ServerCore::create(loop, service.get(), {}, options);
  if (!core) return nullptr;
  return std::unique_ptr<WorkerService>(new (std::nothrow)
                                            WorkerServer(std::move(service), std::move(*core)));
}

}  // namespace

Result<Address> serve(Workers& workers, const Address& address, MakeService make,
                      const ServerOptions& options, const ServeOptions& how) {
  if (!ServerCore::are_valid(options)) return std::unexpected(system_error(EINVAL));
  return workers.listen(address,
                        Workers::MakeService([make = std::move(make), options](Loop& loop) {
                          return make_server(loop, make, options);
                        }),
                        how.balance, ServerCore::bounded(how.listen));
}

}  // namespace spate::http
