// Neighbour: another loop in the same thread. Callbacks of the first loop run it, as a program does
// that waits for an answer. Its callbacks may run the first loop in turn.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "chaos/program.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate::chaos {

class World;

class Neighbour {
 public:
  Neighbour(World& world, std::string_view backend) : world_(world), backend_(backend) {}

  // Asks from the first loop, and waits in the other one for the question to arrive.
  void act(const Step& step);
  void turn();
  // Every question has its answer.
  void check_settled();
  void after_fork();
  void close();

 private:
  bool open();
  std::size_t on_question(Bytes bytes);

  World& world_;
  const std::string_view backend_;
  std::unique_ptr<Loop> loop_;
  Stream asker_;
  Stream answerer_;
  std::size_t asked_ = 0;
  std::size_t heard_ = 0;
  std::size_t answered_ = 0;
};

}  // namespace spate::chaos
