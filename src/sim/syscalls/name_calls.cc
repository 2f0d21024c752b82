// The functions of c-ares that the library calls (calls.txt). In a World they use the World's name
// servers.

#include <ares.h>

#include <cstring>
#include <memory>

#include "sim/net/name_channel.h"
#include "sim/syscalls/simulation.h"

using spate::sim::Kernel;
namespace sim = spate::sim;

namespace spate::sim {

namespace {

// In a World, c-ares' channel type stands for a NameChannel.
NameChannel& ours(ares_channel channel) { return *reinterpret_cast<NameChannel*>(channel); }

}  // namespace

}  // namespace spate::sim

extern "C" {

int spate_sim_ares_init_options(ares_channel* channel, ares_options* options, int mask) {
  sim::Simulation* simulation = sim::Simulation::current();
  if (simulation == nullptr) return ::ares_init_options(channel, options, mask);
  *channel = reinterpret_cast<ares_channel>(
      std::make_unique<sim::NameChannel>(simulation->network, *options, mask).release());
  return ARES_SUCCESS;
}

// Always looks up the hosts file first, whatever the machine's configuration.
int spate_sim_ares_save_options(ares_channel channel, ares_options* options, int* mask) {
  if (Kernel::current() == nullptr) return ::ares_save_options(channel, options, mask);
  options->timeout = sim::ours(channel).timeout_ms();
  options->lookups = ::strdup("fb");
  return options->lookups == nullptr ? ARES_ENOMEM : ARES_SUCCESS;
}

void spate_sim_ares_destroy_options(ares_options* options) {
  if (Kernel::current() == nullptr) return ::ares_destroy_options(options);
  std::free(std::exchange(options->lookups, nullptr));
}

void spate_sim_ares_set_socket_functions(ares_channel channel,
                                         const ares_socket_functions* functions, void* context) {
  if (Kernel::current() == nullptr) return ::ares_set_socket_functions(channel, functions, context);
  sim::ours(channel).set_functions(functions, context);
}

// All servers have the same answers.
int spate_sim_ares_set_servers_ports_csv(ares_channel channel, const char* servers) {
  if (Kernel::current() == nullptr) return ::ares_set_servers_ports_csv(channel, servers);
  return ARES_SUCCESS;
}

void spate_sim_ares_getaddrinfo(ares_channel channel, const char* name, const char* service,
                                const ares_addrinfo_hints* hints, ares_addrinfo_callback callback,
                                void* context) {
  if (Kernel::current() == nullptr)
    return ::ares_getaddrinfo(channel, name, service, hints, callback, context);
  sim::ours(channel).ask(name, hints->ai_family, callback, context);
}

void spate_sim_ares_freeaddrinfo(ares_addrinfo* found) {
  if (Kernel::current() == nullptr) return ::ares_freeaddrinfo(found);
  while (ares_addrinfo_node* node = found->nodes) {
    found->nodes = node->ai_next;
    delete reinterpret_cast<sockaddr_storage*>(node->ai_addr);
    delete node;
  }
  delete found;
}

void spate_sim_ares_process_fd(ares_channel channel, ares_socket_t to_read,
                               ares_socket_t to_write) {
  if (Kernel::current() == nullptr) return ::ares_process_fd(channel, to_read, to_write);
  sim::ours(channel).process();
}

// Timeouts are delivered like answers.
timeval* spate_sim_ares_timeout(ares_channel channel, timeval* most, timeval* room) {
  return Kernel::current() == nullptr ? ::ares_timeout(channel, most, room) : most;
}

void spate_sim_ares_cancel(ares_channel channel) {
  if (Kernel::current() == nullptr) return ::ares_cancel(channel);
  sim::ours(channel).end_all(ARES_ECANCELLED);
}

void spate_sim_ares_destroy(ares_channel channel) {
  if (Kernel::current() == nullptr) return ::ares_destroy(channel);
  const std::unique_ptr<sim::NameChannel> ended(&sim::ours(channel));
  ended->end_all(ARES_EDESTRUCTION);
}

}  // extern "C"
