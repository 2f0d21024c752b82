// Guests: sessions, of Sessions that are given the Streams of Ends, and of servers. A session's
// Stream is played by an End, too, whose calls come by way of the session.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "chaos/doors.h"
#include "chaos/program.h"
#include "spate/net/server.h"
#include "spate/net/session.h"

namespace spate::chaos {

class End;
class Guests;
class World;
struct Visit;

// Sessions, or a server with its own; and what is known of them.
struct Host {
  explicit Host(World& its_world) : world(its_world) {}

  World& world;
  std::unique_ptr<Sessions<Guest>> own;
  Server<Guest> server;
  Sessions<Guest>* list = nullptr;  // nullptr when it has gone.
  Doors::Door* door = nullptr;      // A server's.
  std::set<unsigned> live;          // The numbers of those that have not ended.
  std::size_t guests = 0;           // Those that have not been destroyed.
  bool is_going = false;
  bool in_drain = false;
  int drain_depth = 0;      // Of runs: what is run inside on_drain() may tell that all is done.
  std::error_code ending;   // With what all are being ended just now.
  Nanos drained_by{-1};     // Negative when it is not being drained.
  std::set<unsigned> told;  // on_drain(), of the last drain().
  unsigned drains = 0;
  bool owes_done = false;
};

class Guest : public Session {
 public:
  // `end`: whose Stream it is; nullptr for one that a server has let in.
  explicit Guest(Host& host, End* end = nullptr);
  ~Guest() override;

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_descriptors(std::span<const int> descriptors, bool some_lost) override;
  void on_connected() override;
  void on_drained() override;
  void on_open() override;
  void on_drain() override;
  void on_closed(std::error_code error) override;

  // All are being ended with it just now.
  bool is_ended_with(std::error_code error) const { return host_.ending && host_.ending == error; }
  bool is_being_ended() const { return static_cast<bool>(host_.ending); }
  // It is about to be ended without another call.
  void note_abort();
  End& end() { return *end_; }

 private:
  Host& host_;
  End* end_;
  bool* is_gone_ = nullptr;  // While on_closed() runs.
};

class Guests {
 public:
  explicit Guests(World& world);
  ~Guests();

  void act(const Step& step, const Visit& visit);
  // Its Stream becomes a session's.
  void take_in(End& end, const Step& step);

  void look();
  // Nothing moves any more: those that have ended are gone.
  void check_settled();
  // No connection is left.
  void check_empty();
  void close();

 private:
  bool open(const Step& step);
  void change(Host& host, const Step& step, const Visit& visit);
  void drain(Host& host, const Step& step);
  void on_done(Host& host, unsigned number);
  void end_all(Host& host, const Step& step);
  void for_each(Host& host, const Step& step, const Visit& visit);
  void destroy(Host& host);
  Host* some_host(std::size_t choice);

  World& world_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace spate::chaos
