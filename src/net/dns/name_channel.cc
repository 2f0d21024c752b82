#include "net/dns/name_channel.h"

#include <ares.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>

#include "net/dns/resolv_conf.h"
#include "spate/named_callback.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/socket.h"

namespace spate {

namespace {

// c-ares counts whole milliseconds, by its own clock. Calling it a little late saves a turn in
// which no query is due yet.
constexpr Nanos kSlack{1'000'000};

std::vector<Address> addresses_of(const ares_addrinfo* found, std::uint16_t port) {
  std::vector<Address> addresses;
  if (found == nullptr) return addresses;
  for (const ares_addrinfo_node* node = found->nodes; node != nullptr; node = node->ai_next) {
    const Result<Address> address = Address::from_system(node->ai_addr, node->ai_addrlen);
    if (address) addresses.push_back(address->with_port(port));
  }
  return addresses;
}

Nanos ttl_of(const ares_addrinfo& found) {
  int shortest = INT_MAX;
  for (const ares_addrinfo_node* node = found.nodes; node != nullptr; node = node->ai_next)
    shortest = std::min(shortest, node->ai_ttl);
  for (const ares_addrinfo_cname* alias = found.cnames; alias != nullptr; alias = alias->next)
    shortest = std::min(shortest, alias->ttl);
  return std::chrono::seconds(shortest);
}

int system_family(Families families) {
  return families == kIpv4 ? AF_INET : families == kIpv6 ? AF_INET6 : AF_UNSPEC;
}

// Formats the name servers for c-ares.
std::string list_of(const std::vector<Address>& servers) {
  std::string list;
  for (const Address& server : servers) {
    if (!list.empty()) list += ',';
    list += server.with_port(server.port() == 0 ? 53 : server.port()).to_string();
  }
  return list;
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// Running out of descriptors or memory is reported as an error. c-ares would treat a file that it
// cannot open as empty, and query other servers from then on.
Result<ResolvConf> read_resolv_conf(const std::string& path) {
  std::string text;
  const long result = sys::read_file(path.c_str(), text);
  const int error = result < 0 ? static_cast<int>(-result) : 0;
  if (is_shortage(error)) return std::unexpected(sys::error_code(-error));
  return parse_resolv_conf(text);
}

}  // namespace

Families family_of(const Address& address) {
  return address.family() == Address::Family::ipv6 ? kIpv6 : kIpv4;
}

// ---- functions that c-ares calls in place of system calls

struct NameChannel::Sockets {
  // Sets errno and returns the result, as a system call does.
  template <class Result>
  static Result answer(void* channel, long result) {
    if (result >= 0) return static_cast<Result>(result);
    errno = static_cast<int>(-result);
    // A server that resets a connection has been reached.
    const bool is_reset = result == -ECONNRESET || result == -EPIPE;
    if (result != -EAGAIN && result != -EINPROGRESS)
      static_cast<NameChannel*>(channel)->trouble_ = is_reset ? 0 : errno;
    return -1;
  }

  static ares_socket_t open(int family, int type, int, void* channel) {
    const long fd = sys::open_socket(family, type);
    if (fd >= 0 && type == SOCK_STREAM)
      sys::set_option(static_cast<int>(fd), IPPROTO_TCP, TCP_NODELAY, 1);
    return answer<ares_socket_t>(channel, fd);
  }

  static int close(ares_socket_t fd, void*) {
    const sys::Descriptor closing(fd);
    return 0;
  }

  static int connect(ares_socket_t fd, const sockaddr* address, ares_socklen_t size,
                     void* channel) {
    return answer<int>(channel, sys::connect(fd, address, size));
  }

  static ares_ssize_t receive(ares_socket_t fd, void* data, std::size_t size, int flags,
                              sockaddr* peer, ares_socklen_t* peer_size, void* channel) {
    iovec part{.iov_base = data, .iov_len = size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = peer;
    message.msg_namelen = peer_size == nullptr ? 0 : *peer_size;
    const long received = sys::receive_message(fd, message, flags);
    if (peer_size != nullptr) *peer_size = message.msg_namelen;
    if (received > 0) static_cast<NameChannel*>(channel)->trouble_ = 0;
    return answer<ares_ssize_t>(channel, received);
  }

  static ares_ssize_t send(ares_socket_t fd, const iovec* parts, int count, void* channel) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<sys::PieceCount>(count);
    return answer<ares_ssize_t>(channel, sys::send_message(fd, message));
  }

  static void on_state(void* channel, ares_socket_t fd, int to_read, int to_write) {
    static_cast<NameChannel*>(channel)->watch(fd, to_read != 0, to_write != 0);
  }

  static constexpr ares_socket_functions kFunctions{&open, &close, &connect, &receive, &send};
};

// ---- opening

NameChannel::NameChannel(Loop& loop)
    : loop_(loop),
      timer_(loop, named<Timer, ActiveKind::name_lookup, NameChannel::describe>(
                       bind<&NameChannel::on_time>(this))) {}

NameChannel::~NameChannel() {
  if (channel_ != nullptr) ares_destroy(channel_);
}

Result<std::unique_ptr<NameChannel>> NameChannel::open(Loop& loop, const ResolverOptions& options) {
  std::unique_ptr<NameChannel> channel(new (std::nothrow) NameChannel(loop));
  if (channel == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  if (const std::error_code error = channel->open(options)) return std::unexpected(error);
  return channel;
}

// Opens a channel twice: first with the system's configuration, to read the order of lookups, and
// then for the name servers alone, since the hosts file is read here.
std::error_code NameChannel::open(const ResolverOptions& options) {
  static const int ready = ares_library_init(ARES_LIB_INIT_ALL);
  if (ready != ARES_SUCCESS) return error_of(ready);
  const auto configured = read_resolv_conf(options.resolv_conf);
  if (!configured) return configured.error();
  std::string path = options.resolv_conf;
  char servers_only[] = "b";
  ares_options wish{};
  wish.resolvconf_path = path.data();
  wish.tries = options.tries > 0 ? options.tries : configured->tries;
  wish.timeout =
      sys::to_milliseconds(options.timeout > Nanos{0} ? options.timeout : configured->timeout);
  first_timeout_ = std::chrono::milliseconds(wish.timeout) + kSlack;
  int mask = ARES_OPT_RESOLVCONF | ARES_OPT_TIMEOUTMS;
  if (wish.tries > 0) mask |= ARES_OPT_TRIES;
  if (const int status = ares_init_options(&channel_, &wish, mask); status != ARES_SUCCESS)
    return error_of(status);
  std::optional<std::vector<std::string>> domains;
  if (const std::error_code error = read_system(domains)) return error;
  ares_destroy(std::exchange(channel_, nullptr));
  std::vector<char*> searched;
  if (domains) {
    for (std::string& domain : *domains) searched.push_back(domain.data());
    wish.domains = searched.data();
    wish.ndomains = static_cast<int>(searched.size());
    mask |= ARES_OPT_DOMAINS;
  }
  mask |= ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
  wish.lookups = servers_only;
  wish.sock_state_cb = &Sockets::on_state;
  wish.sock_state_cb_data = this;
  if (const int status = ares_init_options(&channel_, &wish, mask); status != ARES_SUCCESS)
    return error_of(status);
  ares_set_socket_functions(channel_, &Sockets::kFunctions, this);
  return set_servers(options.servers);
}

std::error_code NameChannel::set_servers(const std::vector<Address>& servers) {
  if (servers.empty()) return {};
  const int status = ares_set_servers_ports_csv(channel_, list_of(servers).c_str());
  if (status == ARES_SUCCESS) return {};
  return sys::error_code(status == ARES_ENOMEM ? -ENOMEM : -EINVAL);
}

// Removes the root (".") from the search domains: c-ares 1.18 would append two dots and fail. A
// name is looked up without a domain in any case. c-ares 1.34 reports only what a program has set:
// it then uses the system's domains itself, and the hosts file is asked first.
std::error_code NameChannel::read_system(std::optional<std::vector<std::string>>& domains) {
  ares_options system{};
  int mask = 0;
  const int status = ares_save_options(channel_, &system, &mask);
  if (status == ARES_SUCCESS) {
    for (const char source : std::string_view(system.lookups == nullptr ? "fb" : system.lookups)) {
      if (!sources_.contains(source)) sources_ += source;
    }
    if ((mask & ARES_OPT_DOMAINS) != 0) domains.emplace();
    for (int i = 0; domains && i < system.ndomains; ++i) {
      if (std::string_view(system.domains[i]) != ".") domains->emplace_back(system.domains[i]);
    }
  }
  ares_destroy_options(&system);
  return status == ARES_SUCCESS ? std::error_code() : error_of(status);
}

// ---- queries

void NameChannel::ask(Asker& asker, Query*& query, const std::string& host, Families families,
                      std::uint16_t port) {
  query = new Query{.channel = *this, .asker = &asker, .families = families, .port = port};
  ++queries_;
  ares_addrinfo_hints hints{};
  hints.ai_family = system_family(families);
  const auto on_found = [](void* context, int status, int, ares_addrinfo* found) {
    Query& answered = *static_cast<Query*>(context);
    answered.channel.finish(answered, status, found);
    if (found != nullptr) ares_freeaddrinfo(found);
  };
  ares_getaddrinfo(channel_, host.c_str(), nullptr, &hints, on_found, query);
  arm();
}

void NameChannel::forget_all() {
  ares_cancel(channel_);
  arm();
}

void NameChannel::finish(Query& query, int status, const ares_addrinfo* found) {
  --queries_;
  const std::unique_ptr<Query> ended(&query);
  if (query.asker == nullptr) return;
  if (found != nullptr) query.ttl = ttl_of(*found);
  std::vector<Address> addresses = addresses_of(found, query.port);
  const bool is_empty = status == ARES_SUCCESS && addresses.empty();
  query.asker->on_answer(query, std::move(addresses), error_of(is_empty ? ARES_ENODATA : status));
}

// c-ares returns ARES_ECONNREFUSED when all servers have failed, whatever the reason. If a server
// responded with an error, the last socket call has succeeded.
std::error_code NameChannel::error_of(int status) const {
  switch (status) {
    case ARES_SUCCESS:
      return {};
    case ARES_ENOTFOUND:
      return NameError::no_such_host;
    case ARES_ENODATA:
      return NameError::no_address;
    case ARES_ETIMEOUT:
      return NameError::timeout;
    case ARES_EBADNAME:
    case ARES_EBADSTR:
      return NameError::bad_name;
    case ARES_EBADRESP:
      return NameError::bad_answer;
    case ARES_ENOMEM:
      return sys::error_code(-ENOMEM);
    case ARES_ECONNREFUSED:
      if (is_shortage(trouble_)) return sys::error_code(-trouble_);
      return trouble_ != 0 ? NameError::unreachable : NameError::server_failure;
    default:
      return NameError::server_failure;
  }
}

// ---- watching sockets

void NameChannel::watch(int fd, bool to_read, bool to_write) {
  const auto socket = std::ranges::find(sockets_, fd, &Io::fd);
  const Events events =
      (to_read ? Events::read : Events::none) | (to_write ? Events::write : Events::none);
  if (socket == sockets_.end()) {
    sockets_.emplace_back(loop_, fd, events,
                          named<Io, ActiveKind::name_lookup, NameChannel::describe>(
                              bind<&NameChannel::on_ready>(this)));
    sockets_.back().start();
  } else if (any(events)) {
    socket->modify(events);
  } else {
    socket->stop_before_close();
    sockets_.erase(socket);
  }
}

// If the loop cannot watch a socket, c-ares treats the server as not responding.
void NameChannel::on_ready(Io& io, Events events) {
  const int fd = io.fd();
  ares_process_fd(channel_, any(events & Events::read) ? fd : ARES_SOCKET_BAD,
                  any(events & Events::write) ? fd : ARES_SOCKET_BAD);
  arm();
}

void NameChannel::on_time() {
  ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  timeval left{};
  if (ares_timeout(channel_, nullptr, &left) != nullptr) {
    timer_.start(std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec) +
                 kSlack);
  }
  arm();
}

// ares_timeout() visits all queries, so it is not called after each. The timer is never set later
// than the timeout for a first answer, so no query times out later than that.
void NameChannel::arm() {
  if (is_idle()) {
    timer_.stop();
  } else if (!timer_.is_active() || timer_.remaining() > first_timeout_) {
    timer_.start(first_timeout_);
  }
}

}  // namespace spate
