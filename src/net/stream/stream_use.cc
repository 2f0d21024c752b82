#include "spate/net/stream_use.h"

#include "core/active_list.h"
#include "net/socket_address.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "spate/named_callback.h"

namespace spate {

struct Connection::EventCallbacks {
  // An event goes to the connection, or first to its transport. An event that the transport used
  // up is not passed on.
  template <StreamUse>
  static void plain(void*, Node& head, Events events) {
    on_event(head, events);
  }
  template <StreamUse>
  static void layered(void*, Node& head, Events events) {
    auto& connection = reinterpret_cast<Connection&>(head);
    const Events left = connection.transport_->on_event(connection, events);
    if (any(left)) on_event(head, left);
  }

  static constexpr Node::Callback kPlain[kStreamUses] = {
      plain<StreamUse::general>, plain<StreamUse::http_request>, plain<StreamUse::http_client>,
      plain<StreamUse::http_client_idle>, plain<StreamUse::websocket>};
  static constexpr Node::Callback kLayered[kStreamUses] = {
      layered<StreamUse::general>, layered<StreamUse::http_request>,
      layered<StreamUse::http_client>, layered<StreamUse::http_client_idle>,
      layered<StreamUse::websocket>};
};

void Connection::choose_callback(bool is_layered, StreamUse use) {
  node_.head.callback = (is_layered ? EventCallbacks::kLayered
                                    : EventCallbacks::kPlain)[static_cast<std::size_t>(use)];
}

// The new transport sees events first.
void Connection::put_transport(Transport& transport) {
  transport_ = &transport;
  for (int use = 0; use < kStreamUses; ++use) {
    if (node_.head.callback == EventCallbacks::kPlain[use])
      return choose_callback(true, static_cast<StreamUse>(use));
  }
}

void Connection::set_use(StreamUse use) {
  for (const Node::Callback layered : EventCallbacks::kLayered) {
    if (node_.head.callback == layered) return choose_callback(true, use);
  }
  choose_callback(false, use);
}

void set_use(const Stream& stream, StreamUse use) {
  if (Connection* connection = Connection::of(stream)) connection->set_use(use);
}

// ---- for_each_active()

void Connection::describe(const Node& node, ActiveInfo& info) {
  info.id = &node;
  info.label = peer_address_of(reinterpret_cast<const Connection&>(node).fd()).to_string();
}

void Connection::name_callbacks() {
  static const ActiveKind kinds[kStreamUses] = {ActiveKind::stream, ActiveKind::http_request,
                                                ActiveKind::http_client, ActiveKind::http_client,
                                                ActiveKind::websocket};
  struct Names {
    explicit Names(int use)
        : plain(EventCallbacks::kPlain[use], kinds[use], describer(use)),
          layered(EventCallbacks::kLayered[use], kinds[use], describer(use)) {}
    static DescribeActive describer(int use) {
      return use == static_cast<int>(StreamUse::http_client_idle) ? hide_active : describe;
    }
    NamedCallback plain;
    NamedCallback layered;
  };
  static const Names names[kStreamUses] = {Names(0), Names(1), Names(2), Names(3), Names(4)};
}

// A connection that waits for a rate limit watches nothing.
void Connection::list_active(ActiveList& list) const {
  if (!has(kHoldsLoop)) return;
  ActiveInfo info{.kind = ActiveKind::stream, .fd = fd()};
  list.add(node_.head, std::move(info));
}

void LoopStreams::list_active(ActiveList& list) {
  slab_.for_each([&](const Connection& connection) { connection.list_active(list); });
}

}  // namespace spate
