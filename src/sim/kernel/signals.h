// Signals to a host: who of its loops watches them is told.
#pragma once

namespace spate::sim {

class Kernel;

// False if no loop of the host watches it.
bool raise_signal(const Kernel& kernel, int host, int signum);

}  // namespace spate::sim
