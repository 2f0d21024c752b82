// Packets: datagram sockets of the library's and bare ones that send to each other. Each packet
// carries its sender and its number, so that it can be checked; it arrives at most once.
#pragma once

#include <memory>
#include <vector>

#include "chaos/program.h"
#include "spate/net/datagram.h"

namespace spate::chaos {

class World;
struct Visit;

class Packets {
 public:
  explicit Packets(World& world);
  ~Packets();

  void act(const Step& step, const Visit& visit);
  void make_friendly();
  // Every packet sent to a listening socket must have arrived, unless the kernel had no room.
  void check_settled();
  void close();

 private:
  class Socket;

  void open(const Step& step);
  void change(Socket& socket, const Step& step);
  void send(Socket& from, const Step& step);
  Socket* some_socket(std::size_t choice);
  const Socket* sender(unsigned number) const;

  World& world_;
  std::vector<std::unique_ptr<Socket>> sockets_;
};

}  // namespace spate::chaos
