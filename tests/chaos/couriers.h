// Couriers: they carry bytes from one connection to another: relay() and copy(), and child
// processes that write their input.
//
// Bytes sent to one side of a courier are followed by the other side's channel.
#pragma once

#include <memory>
#include <vector>

#include "chaos/party.h"
#include "chaos/program.h"
#include "spate/net/process.h"
#include "spate/net/relay.h"

namespace spate::chaos {

class End;
class World;
struct Visit;

// The two parties that it plays, and what each may show of the other.
class Courier {
 public:
  enum class Ways : std::uint8_t { one, both };

  Courier(World& world, Ways ways);
  // Replaces `from` and `to`, and reads on from their positions.
  void take_over(End& from, End& to);
  // Becomes the other end of both.
  void stand_between(End& writer, End& reader);
  // Any outcome is allowed from now on.
  void fail(const char* why);
  void catch_up();
  bool reaches(const Party& party) const;
  bool is_lossy() const;
  // The bytes sent to the first side for the second, and back.
  std::uint64_t forth();
  std::uint64_t back();

 private:
  struct Side final : Party {
    Side(World& its_world, Courier& its_courier)
        : Party(its_world, 0, Kind::memory, true), courier(its_courier) {}
    void catch_up() override { courier.catch_up(); }
    bool may_end_short() const override { return courier.has_failed_; }
    bool must_show_end() const override { return may_show_end && !courier.has_failed_; }
    Courier& courier;
    std::size_t from = 0;  // The position in its `in` up to which the other side has its bytes.
  };

  static void replace(End& end, Side& side);
  void pass_on(Side& from, Side& to);

  World& world_;
  const Ways ways_;
  Side first_;
  Side second_;
  bool has_failed_ = false;
  bool is_catching_up_ = false;
};

class Couriers {
 public:
  explicit Couriers(World& world);
  ~Couriers();

  // relaying, spawn, process.
  void act(const Step& step, const Visit& visit);
  // Relays between the Stream of `end` and another one.
  void relay(End& end, const Step& step);

  void look();
  // Returns whether a relay carries bytes over TCP.
  bool has_tcp() const;
  // Returns whether a process carries bytes, or is about to exit, at its own pace.
  bool has_process() const;
  bool has_busy_process() const;  // Not asleep.
  // No connection is left: every relay and child must have its result.
  void check_empty();
  void close();

 private:
  struct Relay;
  struct Child;

  void cancel_relays();
  void on_relayed(Relay& relay, const RelayResult& result);
  void spawn(const Step& step);
  static bool is_running(const Child& child);
  void use_process(Child& child, const Step& step);
  void on_exit(Child& child, const spate::Child& status);

  World& world_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace spate::chaos
