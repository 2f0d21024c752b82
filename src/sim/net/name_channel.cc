#include "sim/net/name_channel.h"

#include <algorithm>
#include <cstring>

namespace spate::sim {

namespace {

// The defaults of c-ares.
constexpr int kTimeoutMs = 5000;
constexpr int kTries = 4;

int status_of(const NameAnswer& answer) {
  if (!answer.error) return ARES_SUCCESS;
  switch (*answer.error) {
    case NameError::no_such_host:
      return ARES_ENOTFOUND;
    case NameError::no_address:
      return ARES_ENODATA;
    case NameError::bad_answer:
      return ARES_EBADRESP;
    case NameError::timeout:
      return ARES_ETIMEOUT;
    default:
      return ARES_ESERVFAIL;
  }
}

// Allocates so that the World's ares_freeaddrinfo() can free it.
ares_addrinfo_node* node_of(const Address& address) {
  auto* node = new ares_addrinfo_node{};
  auto* storage = new sockaddr_storage{};
  std::memcpy(storage, address.data(), address.size());
  node->ai_family = storage->ss_family;
  node->ai_addrlen = static_cast<ares_socklen_t>(address.size());
  node->ai_addr = reinterpret_cast<sockaddr*>(storage);
  return node;
}

ares_addrinfo* found_for(const NameAnswer& answer, int family) {
  auto* found = new ares_addrinfo{};
  ares_addrinfo_node** end = &found->nodes;
  for (const Address& address : answer.addresses) {
    ares_addrinfo_node* node = node_of(address);
    const bool is_wanted = family == AF_UNSPEC || family == node->ai_family;
    if (!is_wanted) {
      delete reinterpret_cast<sockaddr_storage*>(node->ai_addr);
      delete node;
      continue;
    }
    *end = node;
    end = &node->ai_next;
  }
  return found;
}

}  // namespace

NameChannel::NameChannel(Network& network, const ares_options& options, int mask)
    : kernel_(network.kernel()),
      zone_(network.zone),
      on_state_((mask & ARES_OPT_SOCK_STATE_CB) != 0 ? options.sock_state_cb : nullptr),
      state_context_(options.sock_state_cb_data),
      timeout_ms_((mask & ARES_OPT_TIMEOUTMS) != 0 ? options.timeout : kTimeoutMs),
      tries_((mask & ARES_OPT_TRIES) != 0 ? options.tries : kTries) {}

// Each try takes twice as long as the previous one.
Nanos NameChannel::timeouts() const {
  return std::chrono::milliseconds(timeout_ms_) * ((std::int64_t{1} << std::min(tries_, 20)) - 1);
}

Nanos NameChannel::delay_of(const NameAnswer& answer) {
  if (answer.error == NameError::timeout) return timeouts();
  const Nanos delay = std::max(answer.delay, Nanos{0});
  const auto range = static_cast<std::uint64_t>(std::max(answer.jitter, Nanos{0}).count()) + 1;
  const std::uint64_t drawn = kernel_.draw(Purpose::name, zone_.questions) % range;
  return std::min(delay + Nanos{static_cast<std::int64_t>(drawn)}, timeouts());
}

void NameChannel::ask(std::string_view name, int family, ares_addrinfo_callback callback,
                      void* context) {
  const std::uint64_t number = ++zone_.questions;
  Query query{number, family, callback, context, zone_.find(name)};
  if (!open()) return tell(query, ARES_ECONNREFUSED);
  const Nanos delay = delay_of(query.answer);
  if (delay >= timeouts()) query.answer = {.error = NameError::timeout};
  inbox_->queries.push_back(std::move(query));
  kernel_.at(kernel_.now() + delay, [inbox = inbox_, number] {
    const auto due = std::ranges::find(inbox->queries, number, &Query::number);
    if (due == inbox->queries.end()) return;
    due->is_due = true;
    const std::uint64_t one = 1;
    inbox->bell->write(std::as_bytes(std::span(&one, 1)));
  });
}

// Opens a socket as c-ares would, so that its failures are simulated.
bool NameChannel::open() {
  if (fd_ >= 0) return true;
  const ares_socket_t socket = functions_->asocket(AF_INET, SOCK_DGRAM, 0, context_);
  if (socket < 0) return false;
  functions_->aclose(socket, context_);
  fd_ = kernel_.open(inbox_->bell);
  if (fd_ >= 0) on_state_(state_context_, fd_, 1, 0);
  return fd_ >= 0;
}

void NameChannel::close_if_idle() {
  if (!inbox_->queries.empty() || fd_ < 0) return;
  on_state_(state_context_, fd_, 0, 0);
  kernel_.close(std::exchange(fd_, -1));
}

void NameChannel::tell(const Query& query, int status) {
  ares_addrinfo* found = status == ARES_SUCCESS ? found_for(query.answer, query.family) : nullptr;
  query.callback(query.context, status, 0, found);
}

void NameChannel::process() {
  std::uint64_t count = 0;
  inbox_->bell->read(std::as_writable_bytes(std::span(&count, 1)));
  for (;;) {
    const auto due = std::ranges::find(inbox_->queries, true, &Query::is_due);
    if (due == inbox_->queries.end()) break;
    const Query query = std::move(*due);
    inbox_->queries.erase(due);
    tell(query, status_of(query.answer));
  }
  close_if_idle();
}

void NameChannel::end_all(int status) {
  for (const Query& query : std::exchange(inbox_->queries, {})) tell(query, status);
  close_if_idle();
}

}  // namespace spate::sim
