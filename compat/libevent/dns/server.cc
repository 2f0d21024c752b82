// DNS servers: a socket whose queries the program answers.
//
// Semantics: event2/dns.h (evdns_add_server_port_with_base and the functions after it); probed:
// which messages are ignored, and the form of a reply.
//
// libevent crashes on messages that are shorter than a header, and sends uninitialised memory when
// a reply is too long. Here the first are ignored, and a long reply ends with its last whole
// record.
//
// Threads: a port has a lock. The program's callback is called without it.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "compat/libevent/dns/log.h"
#include "compat/libevent/dns/message.h"
#include "compat/libevent/dns/resolver.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;
using namespace spate::libevent::dns;

namespace {

constexpr std::size_t kReceivedMost = 1500;
constexpr std::size_t kReplyMost = 512;
constexpr std::size_t kQuestionLeast = 5;
constexpr int kMessagesInTurn = 64;
constexpr int kSections = 3;
constexpr int kCodeMost = 15;

// The data and the name follow in memory.
struct ReplyItem {
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(this + 1); }
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(this + 1); }

  ReplyItem* next;
  const char* name;
  std::uint16_t type;
  std::uint16_t dns_class;
  std::uint32_t ttl;
  bool is_name;
  std::size_t size;
};

struct Reply : evdns_server_request {
  evdns_server_port* port;
  Reply* next;  // That waits to be sent.
  Address sender;
  socklen_t sender_size;
  std::uint16_t id;
  ReplyItem* items[kSections];
  std::size_t size;
  std::uint8_t packet[kReplyMost];
};

Reply& reply_of(evdns_server_request* request) { return *static_cast<Reply*>(request); }

}  // namespace

struct evdns_server_port {
  void* lock;
  evutil_socket_t fd;
  event readable;
  event writable;
  evdns_request_callback_fn_type callback;
  void* argument;
  Reply* unsent;   // In order.
  int references;  // The program's, one for each request, and one while callbacks run.
  bool is_closed;
};

namespace {

// ---- requests and ports

void destroy(Reply* reply) {
  for (int i = 0; i < reply->nquestions; ++i) release(reply->questions[i]);
  release(reply->questions);
  for (ReplyItem* item : reply->items) {
    while (item != nullptr) release(std::exchange(item, item->next));
  }
  release(reply);
}

// Needs the lock, and releases it. The last reference frees the port.
void give_up(evdns_server_port& port) {
  void* lock = port.lock;
  const bool is_last = --port.references == 0;
  give_back(lock);
  if (!is_last) return;
  event_del(&port.readable);
  event_del(&port.writable);
  event_debug_unassign(&port.readable);
  event_debug_unassign(&port.writable);
  if (port.fd >= 0) evutil_closesocket(port.fd);
  release(&port);
  free_lock(lock);
}

// With the lock.
void end(Reply* reply) {
  evdns_server_port& port = *reply->port;
  destroy(reply);
  --port.references;  // Not the last reference: the caller has another.
}

// ---- reading

evdns_server_question* make_question(const Question& read) {
  const std::size_t size = std::strlen(read.name) + 1;
  auto* question =
      static_cast<evdns_server_question*>(allocate_zeroed(sizeof(evdns_server_question) + size));
  if (question == nullptr) return nullptr;
  question->type = read.type;
  question->dns_question_class = read.dns_class;
  std::memcpy(question->name, read.name, size);
  return question;
}

bool read_questions(Reader& reader, int count, Reply& reply) {
  const std::size_t size = static_cast<std::size_t>(count) * sizeof(evdns_server_question*);
  reply.questions = static_cast<evdns_server_question**>(allocate_zeroed(size));
  if (reply.questions == nullptr) return false;
  while (reply.nquestions < count) {
    Question question;
    if (!reader.question(question)) return false;
    reply.questions[reply.nquestions] = make_question(question);
    if (reply.questions[reply.nquestions] == nullptr) return false;
    ++reply.nquestions;
  }
  return true;
}

// Null if it is no request.
Reply* read_request(std::span<const std::uint8_t> message) {
  Reader reader(message);
  Header header;
  if (!reader.header(header) || (header.flags & kIsResponse) != 0) return nullptr;
  const bool may_be_there = header.questions <= message.size() / kQuestionLeast;
  if (header.questions == 0 || !may_be_there) return nullptr;
  auto* reply = static_cast<Reply*>(allocate_zeroed(sizeof(Reply)));
  if (reply == nullptr) return nullptr;
  reply->id = header.id;
  reply->flags = header.flags & (kRecursionDesired | kCheckingDisabled);
  if (read_questions(reader, header.questions, *reply)) return reply;
  destroy(reply);
  return nullptr;
}

// Needs the lock, and releases it while the program's callback runs.
void hand_over(evdns_server_port& port, Reply* reply) {
  reply->port = &port;
  ++port.references;
  const evdns_request_callback_fn_type callback = port.callback;
  void* argument = port.argument;
  if (callback == nullptr) return end(reply);
  give_back(port.lock);
  callback(reply, argument);
  acquire(port.lock);
}

void read_all(evdns_server_port& port) {
  for (int i = 0; i < kMessagesInTurn && !port.is_closed; ++i) {
    std::uint8_t bytes[kReceivedMost];
    Address sender;
    socklen_t size = sizeof sender;
    const ssize_t got = recvfrom(port.fd, bytes, sizeof bytes, MSG_DONTWAIT, &sender.any, &size);
    if (got < 0) {
      const bool is_over = errno == EAGAIN || errno == EINTR;
      if (!is_over) log(Note::warning, "reading a request: %s", std::strerror(errno));
      return;
    }
    Reply* reply = read_request({bytes, static_cast<std::size_t>(got)});
    if (reply == nullptr) continue;
    reply->sender = sender;
    reply->sender_size = size;
    hand_over(port, reply);
  }
}

void on_readable(evutil_socket_t, short, void* argument) {
  auto& port = *static_cast<evdns_server_port*>(argument);
  acquire(port.lock);
  ++port.references;
  read_all(port);
  give_up(port);
}

// ---- writing

bool write_item(Writer& writer, const ReplyItem& item) {
  if (!item.is_name) {
    return writer.record(item.name, item.type, item.dns_class, item.ttl, {item.data(), item.size});
  }
  const auto* target = reinterpret_cast<const char*>(item.data());
  return writer.name_record(item.name, item.type, item.dns_class, item.ttl, target);
}

// Writes all records that fit, and sets the truncation flag if some do not.
bool write_records(Writer& writer, const Reply& reply, std::uint16_t (&counts)[kSections]) {
  for (int section = 0; section < kSections; ++section) {
    for (const ReplyItem* item = reply.items[section]; item != nullptr; item = item->next) {
      if (!write_item(writer, *item)) return false;
      ++counts[section];
    }
  }
  return true;
}

bool write_questions(Writer& writer, const Reply& reply) {
  for (int i = 0; i < reply.nquestions; ++i) {
    const evdns_server_question& question = *reply.questions[i];
    if (!writer.question(question.name, static_cast<std::uint16_t>(question.type),
                         static_cast<std::uint16_t>(question.dns_question_class))) {
      return false;
    }
  }
  return true;
}

void write_reply(Reply& reply, int code) {
  Writer writer(reply.packet);
  std::uint16_t counts[kSections] = {};
  writer.header({});
  const bool has_questions = write_questions(writer, reply);
  const bool is_whole = has_questions && write_records(writer, reply, counts);
  unsigned flags = static_cast<unsigned>(reply.flags | code) | kIsResponse;
  if (!is_whole) flags |= kIsTruncated;
  writer.header({.id = reply.id,
                 .flags = static_cast<std::uint16_t>(flags),
                 .questions = static_cast<std::uint16_t>(has_questions ? reply.nquestions : 0),
                 .answers = counts[EVDNS_ANSWER_SECTION],
                 .authorities = counts[EVDNS_AUTHORITY_SECTION],
                 .additional = counts[EVDNS_ADDITIONAL_SECTION]});
  reply.size = has_questions ? writer.size() : kHeaderSize;
}

enum class Sent { is_sent, later, failed };

Sent send(const Reply& reply) {
  const ssize_t sent = sendto(reply.port->fd, reply.packet, reply.size, MSG_DONTWAIT,
                              &reply.sender.any, reply.sender_size);
  if (sent >= 0) return Sent::is_sent;
  return errno == EAGAIN || errno == EINTR ? Sent::later : Sent::failed;
}

void queue(evdns_server_port& port, Reply* reply) {
  Reply** last = &port.unsent;
  while (*last != nullptr) last = &(*last)->next;
  *last = reply;
  event_add(&port.writable, nullptr);
}

void send_queued(evdns_server_port& port) {
  while (Reply* reply = port.unsent) {
    if (send(*reply) == Sent::later) {
      event_add(&port.writable, nullptr);
      return;
    }
    port.unsent = reply->next;
    end(reply);
  }
}

void on_writable(evutil_socket_t, short, void* argument) {
  auto& port = *static_cast<evdns_server_port*>(argument);
  acquire(port.lock);
  ++port.references;
  send_queued(port);
  give_up(port);
}

// ---- items

ReplyItem* make_item(std::string_view name, std::size_t size) {
  const std::size_t all = sizeof(ReplyItem) + size + name.size() + 1;
  auto* item = static_cast<ReplyItem*>(allocate_zeroed(all));
  if (item == nullptr) return nullptr;
  item->size = size;
  char* copy = reinterpret_cast<char*>(item->data() + size);
  std::ranges::copy(name, copy);
  item->name = copy;
  return item;
}

void append(ReplyItem*& first, ReplyItem* item) {
  ReplyItem** last = &first;
  while (*last != nullptr) last = &(*last)->next;
  *last = item;
}

int add_addresses(evdns_server_request* request, const char* name, int type, unsigned size,
                  int count, const void* addresses, int ttl) {
  return evdns_server_request_add_reply(request, EVDNS_ANSWER_SECTION, name, type, EVDNS_CLASS_INET,
                                        ttl, static_cast<int>(size * static_cast<unsigned>(count)),
                                        0, static_cast<const char*>(addresses));
}

}  // namespace

// ---- the exported functions

evdns_server_port* evdns_add_server_port_with_base(event_base* base, evutil_socket_t socket,
                                                   int flags,
                                                   evdns_request_callback_fn_type callback,
                                                   void* argument) {
  if (flags != 0) return nullptr;
  auto* port = static_cast<evdns_server_port*>(allocate_zeroed(sizeof(evdns_server_port)));
  if (port == nullptr) return nullptr;
  port->fd = socket;
  port->callback = callback;
  port->argument = argument;
  port->references = 1;
  port->lock = make_lock();
  event_assign(&port->readable, base, socket, EV_READ | EV_PERSIST, on_readable, port);
  event_assign(&port->writable, base, socket, EV_WRITE, on_writable, port);
  if (event_add(&port->readable, nullptr) == 0) return port;
  event_debug_unassign(&port->readable);
  event_debug_unassign(&port->writable);
  free_lock(port->lock);
  release(port);
  return nullptr;
}

// Pending requests can still be answered.
void evdns_close_server_port(evdns_server_port* port) {
  acquire(port->lock);
  port->is_closed = true;
  give_back(port->lock);
  event_del(&port->readable);
  acquire(port->lock);
  give_up(*port);
}

void evdns_server_request_set_flags(evdns_server_request* request, int flags) {
  request->flags &= ~(EVDNS_FLAGS_AA | EVDNS_FLAGS_RD);
  request->flags |= flags;
}

int evdns_server_request_add_reply(evdns_server_request* request, int section, const char* name,
                                   int type, int dns_class, int ttl, int size, int is_name,
                                   const char* data) {
  const bool is_known = section >= 0 && section < kSections;
  if (!is_known || name == nullptr) return -1;
  if (is_name != 0 ? data == nullptr : (data != nullptr && size <= 0)) return -1;
  const std::size_t taken =
      is_name != 0 ? std::strlen(data) + 1 : static_cast<std::size_t>(data != nullptr ? size : 0);
  Reply& reply = reply_of(request);
  const Holding holding(reply.port->lock);
  ReplyItem* item = make_item(name, taken);
  if (item == nullptr) return -1;
  item->type = static_cast<std::uint16_t>(type);
  item->dns_class = static_cast<std::uint16_t>(dns_class);
  item->ttl = static_cast<std::uint32_t>(ttl);
  item->is_name = is_name != 0;
  if (taken > 0) std::memcpy(item->data(), data, taken);
  append(reply.items[section], item);
  return 0;
}

int evdns_server_request_add_a_reply(evdns_server_request* request, const char* name, int count,
                                     const void* addresses, int ttl) {
  return add_addresses(request, name, EVDNS_TYPE_A, 4, count, addresses, ttl);
}

int evdns_server_request_add_aaaa_reply(evdns_server_request* request, const char* name, int count,
                                        const void* addresses, int ttl) {
  return add_addresses(request, name, EVDNS_TYPE_AAAA, 16, count, addresses, ttl);
}

int evdns_server_request_add_ptr_reply(evdns_server_request* request, in_addr* address,
                                       const char* address_name, const char* host, int ttl) {
  if ((address == nullptr) == (address_name == nullptr)) return -1;
  char own[32];
  if (address != nullptr) {
    std::uint8_t bytes[4];
    std::memcpy(bytes, address, sizeof bytes);
    evutil_snprintf(own, sizeof own, "%d.%d.%d.%d.in-addr.arpa", bytes[3], bytes[2], bytes[1],
                    bytes[0]);
    address_name = own;
  }
  return evdns_server_request_add_reply(request, EVDNS_ANSWER_SECTION, address_name, EVDNS_TYPE_PTR,
                                        EVDNS_CLASS_INET, ttl, 0, 1, host);
}

int evdns_server_request_add_cname_reply(evdns_server_request* request, const char* name,
                                         const char* canonical, int ttl) {
  return evdns_server_request_add_reply(request, EVDNS_ANSWER_SECTION, name, EVDNS_TYPE_CNAME,
                                        EVDNS_CLASS_INET, ttl, 0, 1, canonical);
}

int evdns_server_request_respond(evdns_server_request* request, int code) {
  if (code < 0 || code > kCodeMost) return -1;
  Reply& reply = reply_of(request);
  evdns_server_port& port = *reply.port;
  acquire(port.lock);
  write_reply(reply, code);
  const Sent result = port.unsent != nullptr ? Sent::later : send(reply);
  if (result == Sent::later) {
    queue(port, &reply);
    give_back(port.lock);
    return 1;
  }
  destroy(&reply);
  give_up(port);
  return result == Sent::is_sent ? 0 : -1;
}

int evdns_server_request_drop(evdns_server_request* request) {
  Reply& reply = reply_of(request);
  evdns_server_port& port = *reply.port;
  acquire(port.lock);
  destroy(&reply);
  give_up(port);
  return 0;
}

int evdns_server_request_get_requesting_addr(evdns_server_request* request, sockaddr* address,
                                             int size) {
  const Reply& reply = reply_of(request);
  if (size < static_cast<int>(reply.sender_size)) return -1;
  std::memcpy(address, &reply.sender, reply.sender_size);
  return static_cast<int>(reply.sender_size);
}
