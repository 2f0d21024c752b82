// Guests: sessions, of Sessions that are given the Streams of Ends, and of servers. An End also
// plays a session's Stream; its callbacks come by way of the session.
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

// Sessions, or a server with sessions; and their model.
struct Host {
  explicit Host(World& its_world) : world(its_world) {}

  World& world;
  std::unique_ptr<Sessions<Guest>> own;
  Server<Guest> server;
  Sessions<Guest>* list = nullptr;  // nullptr once destroyed.
  Doors::Door* door = nullptr;      // The server's listener.
  std::set<unsigned> live;          // The numbers of the open ones.
  std::size_t guests = 0;           // Guests that were not destroyed.
  bool is_going = false;
  int drain_depth = -1;     // How many runs the innermost drain() is inside, if there is one.
  std::error_code ending;   // The error with which all are being ended.
  Nanos drained_by{-1};     // Negative if it is not being drained.
  std::set<unsigned> told;  // Their on_drain() was called in the last drain().
  unsigned drains = 0;
  std::set<unsigned> owed;  // Calls of drain() whose callback is still due.
};

class Guest : public Session {
 public:
  // `end` plays its Stream; nullptr for a session that a server accepted.
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

  // The error with which all are being ended.
  bool is_ended_with(std::error_code error) const { return host_.ending && host_.ending == error; }
  bool is_being_ended() const { return static_cast<bool>(host_.ending); }
  // It is about to end without another call.
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
  // Gives its Stream to a session.
  void take_in(End& end, const Step& step);

  void look();
  // Nothing moves any more: ended sessions must be destroyed.
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
