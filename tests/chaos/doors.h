// Doors: how connections are established: listeners, connect() by address and by name, clients, and
// bare sockets that connect.
//
// The two ends of a connection appear one after the other. They are matched by the caller's port
// (World::meet()).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "chaos/end.h"
#include "chaos/program.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"

namespace spate::testing {
class NameServer;
}

namespace spate::chaos {

class Guest;
struct Host;
class Raw;
class World;
struct Visit;

class Doors {
 public:
  explicit Doors(World& world);
  ~Doors();

  void act(const Step& step, const Visit& visit);

  // True while the result of a connect() is pending.
  bool has_attempts() const;
  void make_friendly();
  // Nothing moves any more: every connect() must have its result, and every caller must have been
  // accepted.
  void check_settled();
  // No connection is left.
  void check_empty();
  void close();

  struct Door {
    std::optional<Listener> own;
    Listener* listener = nullptr;  // Its own, or a server's; nullptr once destroyed.
    Address address;
    std::size_t max = SIZE_MAX;
    bool is_paused = false;
    bool is_closing = false;  // It accepts the pending connections, and closes.
    bool in_listen = true;
    std::uint64_t calls = 0;
    std::vector<Raw*> guests;  // The bare sockets that connected to it.
  };

  // ---- for Guests

  bool serve(Host& host, const Step& step);
  End& admit_guest(Guest& guest, Door& door);
  void note_closing(Door& door);
  void note_gone(Door& door);

  // Calls Stream::connect() on the handle of `before`, which that closes; on a new one if `before`
  // is null.
  void connect_stream(End* before, const Step& step);

 private:
  struct Attempt {
    Connecting handle;
    bool in_connect = true;
    bool is_over = false;  // Called, or cancelled.
    bool is_cancelled = false;
    bool may_fail = false;
    Nanos due{-1};  // When its timeout expires; none if negative.
    Nanos since{0};
    Nanos timeout{0};
    Door* door = nullptr;
  };
  struct Caller {
    std::optional<Client> client;
    Door* door = nullptr;
    End* current = nullptr;
    std::uint64_t connections = 0;
    bool is_wanted = false;
  };

  void listen(const Step& step);
  void change_door(const Step& step);
  void knock(const Step& step);
  void connect(const Step& step);
  void connect_by_name(Attempt& attempt, const ConnectOptions& options, const Step& step);
  void cancel(const Step& step);
  void use_client(const Step& step);
  void change_client(Caller& caller, const Step& step);
  Door* some_door(std::size_t choice);
  testing::NameServer& names();

  void on_accept(Door& door, Stream stream, const Address& peer);
  void on_connected(Attempt& attempt, Result<Stream> result);
  void on_called(Caller& caller, Result<Stream> result);
  void note_accepted(Door& door, const Address& peer);
  bool may_refuse(const Door* door, std::error_code error) const;
  End* admit(Result<Stream>& result);

  World& world_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Attempt>> attempts_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::unique_ptr<testing::NameServer> names_;
};

}  // namespace spate::chaos
