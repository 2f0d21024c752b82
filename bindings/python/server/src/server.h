// Server: an HTTP server on a spate loop inside of an asyncio loop. Python calls turn() when the
// descriptor of the inner loop is readable; the server asks for turns and timers otherwise.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "spate/http/server.h"
#include "spate/loop.h"
#include "spate/net/listener.h"
#include "state.h"

namespace spate_server {

struct Cycle;
class Engine;

struct Server {
  PyObject_HEAD
  PyObject* module;  // Keeps the state until the Server is destroyed.
  State* state;
  Engine* engine;
  PyObject* loop;         // asyncio's.
  PyObject* run;          // Starts a request: run(scope, cycle). Returns its coroutine, or None.
  PyObject* tasks;        // A dict: the task of each Cycle and Socket.
  PyObject* forwarded;    // Changes a scope with X-Forwarded headers, or None.
  PyObject* tls;          // Returns the extension tls: tls(version, cipher, certificate).
  PyObject* access;       // Called for each line of the access log, or None.
  PyObject* scope_state;  // The dict of the lifespan.
  PyObject* environ;      // WSGI: what the environs of all requests have. ASGI: None.
  PyObject* root_path;
  PyObject* at_last;  // Called at the last request of the process, or None.
  PyObject* local;    // scope["server"].
};

inline Server* server_of(PyObject* self) { return reinterpret_cast<Server*>(self); }
inline PyObject* as_object(Server* server) { return reinterpret_cast<PyObject*>(server); }

// The C++ half.
class Engine final : public spate::http::Service {
 public:
  static constexpr int kIds = 64;
  static constexpr int kClients = 256;

  Engine(Server* server, std::unique_ptr<spate::Loop> loop)
      : server_(server), loop_(std::move(loop)) {}
  ~Engine();
  // Closes all connections. Cycles and Sockets get no further event.
  void close();
  // For the garbage collector: the references that may be parts of cycles.
  int traverse(visitproc visit, void* arg);
  void clear();

  bool start(spate::http::ServerOptions options);
  bool listen(const spate::Address& address, const spate::ListenOptions& options);
  bool adopt(int fd, int backlog);
  void drain(double seconds, PyObject* done);
  void on_request(spate::http::Exchange exchange) override;

  // Makes a turn of the inner loop. False with an exception.
  bool turn();
  // Has a turn made soon. Called after each use of an Exchange or a WebSocket.
  void request_turn();
  int descriptor();
  // Whether a task runs its first step when it is made, which saves a turn of the outer loop.
  // asyncio can do so since Python 3.12. A factory of tasks decides it otherwise.
  bool starts_at_once() const { return starts_at_once_; }

  std::size_t in_progress = 0;  // Cycles and Sockets.
  std::size_t limit = SIZE_MAX;
  std::size_t max_message = 16 * 1024 * 1024;
  std::size_t requests_left = 0;  // Until the process ends; 0: no limit.
  spate::http::Fields headers;    // Sent with each response.
  std::array<PyObject*, kIds> field_names{};
  std::array<PyObject*, kIds> environ_names{};  // As in CGI: HTTP_ACCEPT.
  // scope["client"] of recent requests.
  std::array<std::pair<spate::Address, Ref>, kClients> clients;
  // Cycles and Sockets that wait for the end of their exchange or WebSocket, and what ends that.
  std::unordered_map<PyObject*, void (*)(PyObject*)> watched;

 private:
  bool prepare();
  // Reads from the outer loop whether new tasks may start at once. False with an exception.
  bool choose_start();
  // Handles the exception of a Python function that the inner loop has called. SystemExit and
  // KeyboardInterrupt are raised by turn(), because they are meant for the outer loop.
  void report(PyObject* function);
  void count_request();
  void call_log(const spate::http::AccessRecord& record);
  void cancel_timer();

  Server* server_;
  std::unique_ptr<spate::Loop> loop_;
  spate::http::Server http_;
  std::vector<spate::Listener> listeners_;
  std::vector<Ref> drained_;  // The functions of drain() that were not called yet.
  Ref timer_;
  spate::Nanos timer_at_{spate::kForever};
  Ref exit_;  // The exception that turn() is to raise.
  bool is_running_ = false;
  bool is_scheduled_ = false;
  bool starts_at_once_ = false;
};

// Starts the request of a Cycle or Socket, and its task if it has a coroutine. False with an
// exception.
bool start_task(Server* server, PyObject* scope, PyObject* cycle);

extern PyType_Spec server_spec;

}  // namespace spate_server
