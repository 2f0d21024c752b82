// The place where a scenario runs: a loop on the system's sockets, or a World with one host. A
// scenario notes the events that its program sees, separately for each actor: they must be the same
// on every backend. Differences that are allowed, and do not affect the notes:
//
// * the order of two actors' events: each actor has a separate list;
// * into how many pieces the bytes of a stream are split: all between two other events are one
//   entry;
// * how packets are batched: each is an entry;
// * how much a kernel takes at once, so whether and when a queue has drained: an entry only in a
//   scenario that waits for it;
// * how long anything takes: no entry has a time;
// * which ports and descriptors are free: no entry has their numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/loop.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/stream.h"

namespace spate::parity {

using namespace std::chrono_literals;

// Returns "-" for no error.
std::string said(std::error_code error);

class Stage;

// The owner of a Stream, and the events that it sees.
class Actor final : public StreamHandler {
 public:
  Actor(Stage& stage, std::string name) : stage_(stage), name_(std::move(name)) {}

  Stream stream;
  std::size_t received = 0;
  bool is_connected = false;
  bool is_over = false;
  // Actions for each event, after it was noted.
  std::function<void(Bytes)> does_with_data;
  std::function<void()> does_at_end;
  std::function<void()> does_when_connected;
  std::function<void()> does_when_drained;
  std::function<void(std::span<const int>)> does_with_descriptors;
  // Returns how many of the bytes it uses; if empty, it uses all.
  std::function<std::size_t(Bytes)> uses;

  void note(std::string_view event);
  std::string text() const;

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_connected() override;
  void on_drained() override;
  void on_descriptors(std::span<const int> descriptors, bool some_lost) override;
  void on_closed(std::error_code error) override;

 private:
  Stage& stage_;
  std::string name_;
  std::string events_;
  std::string data_;  // Bytes that are not noted yet.
  // Notes a callback; none may follow on_closed().
  void see(std::string_view event);
  void flush();
  static std::string told(std::string_view data);
};

class Stage {
 public:
  virtual ~Stage() = default;
  virtual Loop& loop() = 0;
  // Lets so much time pass.
  virtual void pass(Nanos span) = 0;
  // While it is on, no descriptor can be opened.
  virtual void set_exhausted(bool on) = 0;

  // Waits until the condition holds, and notes it if it does not.
  void until(const std::function<bool()>& condition);
  void note(std::string_view event);
  void note(std::string_view what, std::error_code error);
  void note(std::string_view what, std::size_t number);

  Actor& actor(std::string name);
  // Listens at a free port of an own loopback address, and gives the first connection to the first
  // of `accepted`, and so on; further ones are closed.
  Listener& listen(std::vector<Actor*> accepted, const ListenOptions& options = {});
  // Listens at an address. An error is noted, and the listener is closed then.
  Listener& listen_at(const Address& address, std::vector<Actor*> accepted,
                      const ListenOptions& options = {});
  void connect(Actor& client, const Listener& listener, const ConnectOptions& options = {});
  // Notes the result of an attempt, and closes the connection.
  void try_to_connect(std::vector<Address> addresses, const ConnectOptions& options = {});
  struct Two {
    Actor& client;
    Actor& server;
  };
  // A connection over TCP.
  Two connected();
  void until_over(const Two& two);
  Datagram& datagram(const DatagramOptions& options = {});

  // Returns all notes. Destroys the actors' objects.
  std::string finish();

 protected:
  virtual bool wait(const std::function<bool()>& condition) = 0;
  void clear();

 private:
  std::string events_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Datagram>> datagrams_;
};

// A heavy scenario moves megabytes.
enum class Weight : std::uint8_t { light, heavy };
struct Scenario {
  std::string_view name;
  void (*play)(Stage& stage);
  Weight weight = Weight::light;
};
inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }
std::span<const Scenario> endings();
std::span<const Scenario> transfers();
std::span<const Scenario> arrivals();
std::span<const Scenario> packets();
std::span<const Scenario> ports();
std::vector<Scenario> all_scenarios();

std::unique_ptr<Stage> real_stage(std::string_view backend);
std::unique_ptr<Stage> world_stage();
// As above, with failing calls in the format of SPATE_FAULTS.
std::unique_ptr<Stage> world_stage(std::string_view plan);

}  // namespace spate::parity
