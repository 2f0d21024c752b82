// Signals of a host, which are delivered to its own loops only.
#pragma once

namespace spate::sim {

class Kernel;

// False if no loop of the host watches it.
bool raise_signal(const Kernel& kernel, int host, int signum);

}  // namespace spate::sim
