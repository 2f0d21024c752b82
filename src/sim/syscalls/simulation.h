// Simulation: the simulated kernel of a World with its devices, which system calls reach.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/disk/disks.h"
#include "sim/kernel/kernel.h"
#include "sim/net/network.h"
#include "sim/syscalls/call_faults.h"
#include "sim/unix/names.h"

namespace spate::sim {

class Simulation final : public Kernel {
 public:
  Simulation(std::uint64_t seed, WorldInterface& world) : Kernel(seed, world) {}

  // Returns that of the calling thread, or nullptr.
  static Simulation* current() { return static_cast<Simulation*>(Kernel::current()); }

  std::unique_ptr<CallFaults> call_faults;
  LocalNames local_names;
  Disks disks{*this};
  Network network{*this};
};

}  // namespace spate::sim
