#include "spate/http/router.h"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http/server/exchange_state.h"
#include "spate/assert.h"
#include "spate/http/url.h"

namespace spate::http {

namespace {

constexpr std::size_t kMethods = static_cast<std::size_t>(Method::other) + 1;
constexpr std::size_t index_of(Method method) { return static_cast<std::size_t>(method); }

// The rest of a path or pattern; nullopt after its last segment.
using Rest = std::optional<std::string_view>;

// Removes and returns the first segment.
std::string_view take_segment(Rest& rest) {
  const std::size_t end = rest->find('/');
  const std::string_view segment = rest->substr(0, end);
  rest = end == std::string_view::npos ? Rest() : rest->substr(end + 1);
  return segment;
}

bool is_parameter(std::string_view segment) { return segment.starts_with(':'); }
bool is_rest(std::string_view segment) { return segment.starts_with('*'); }

// Returns a copy that is never destroyed, because the Exchanges of routes that were replaced still
// refer to it. Equal texts share a copy, so that a program that replaces its routes for ever needs
// no more memory.
std::string_view interned(std::string_view text) {
  struct Texts {
    std::mutex mutex;
    std::set<std::string, std::less<>> set;
  };
  static Texts& texts = *new Texts;
  const std::scoped_lock lock(texts.mutex);
  if (const auto found = texts.set.find(text); found != texts.set.end()) return *found;
  return *texts.set.emplace(text).first;
}

}  // namespace

// A node of the tree of patterns; its position stands for the segments up to it.
struct Router::Node {
  struct Route {
    OnRequest handler;
    RouteOptions options;
    std::string_view pattern;
  };

  Route* route(Method method) {
    if (Route& route = routes[index_of(method)]; route.handler) return &route;
    if (method == Method::head && routes[index_of(Method::get)].handler)
      return &routes[index_of(Method::get)];
    return any.handler ? &any : nullptr;
  }
  bool has_route() const {
    return any.handler || std::ranges::any_of(routes, [](const Route& route) {
             return static_cast<bool>(route.handler);
           });
  }
  std::string allowed();

  Node* literal(std::string_view segment) const;
  Node& make_next(std::string_view segment);
  static Node& make(std::unique_ptr<Node>& node, std::string_view name);

  std::string_view name;  // A literal segment, or the name of a parameter.
  std::vector<std::unique_ptr<Node>> literals;
  std::unique_ptr<Node> parameter;
  std::unique_ptr<Node> rest;
  std::array<Route, kMethods> routes;
  Route any;
};

// Searches the node of a path, and records the parameters on the way.
struct Router::Match {
  Match(MatchedRoute& matched, std::string_view whole) : route(matched), path(whole) {}

  Node* find(Node& node, Rest rest);
  Node* find_as(Node* node, std::string_view value, Rest rest);
  std::size_t offset(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - path.data());
  }

  MatchedRoute& route;
  std::string_view path;
};

// ---- registration

Router::Router() : root_(std::make_unique<Node>()) {}
Router::Router(Router&& other) noexcept = default;
Router& Router::operator=(Router&& other) noexcept {
  Router moved(std::move(other));
  std::swap(root_, moved.root_);
  otherwise_.swap(moved.otherwise_);
  return *this;
}
Router::~Router() = default;

Router::Node* Router::Node::literal(std::string_view segment) const {
  const auto found =
      std::ranges::find(literals, segment, [](const auto& each) { return each->name; });
  return found == literals.end() ? nullptr : found->get();
}

Router::Node& Router::Node::make(std::unique_ptr<Node>& node, std::string_view name) {
  if (node == nullptr) {
    node = std::make_unique<Node>();
    node->name = interned(name);
  }
  SPATE_ASSERT(node->name == name, "two patterns call the same segment by two names");
  return *node;
}

Router::Node& Router::Node::make_next(std::string_view segment) {
  if (is_parameter(segment)) return make(parameter, segment.substr(1));
  if (is_rest(segment)) return make(rest, segment.substr(1));
  if (Node* there = literal(segment)) return *there;
  literals.emplace_back();
  return make(literals.back(), segment);
}

Router::Node& Router::node_of(std::string_view pattern) {
  SPATE_ASSERT(pattern.starts_with('/'), "a pattern begins with '/'");
  Node* node = root_.get();
  [[maybe_unused]] std::size_t names = 0;
  for (Rest rest = pattern.substr(1); rest;) {
    const std::string_view segment = take_segment(rest);
    SPATE_ASSERT(!is_rest(segment) || !rest, "\"*name\" is the last segment of a pattern");
    names += is_parameter(segment) || is_rest(segment);
    node = &node->make_next(segment);
  }
  SPATE_ASSERT(names <= MatchedRoute::kMostParams, "a pattern has at most 8 names");
  return *node;
}

void Router::on(Method method, std::string_view pattern, OnRequest handler,
                const RouteOptions& options) {
  SPATE_ASSERT(method != Method::other, "any() takes methods without a name");
  Node::Route& route = node_of(pattern).routes[index_of(method)];
  SPATE_ASSERT(!route.handler, "a second handler for a pattern and method");
  route = {std::move(handler), options, interned(pattern)};
}

void Router::any(std::string_view pattern, OnRequest handler, const RouteOptions& options) {
  Node::Route& route = node_of(pattern).any;
  SPATE_ASSERT(!route.handler, "a second handler for a pattern");
  route = {std::move(handler), options, interned(pattern)};
}

void Router::otherwise(OnRequest handler) { otherwise_.swap(handler); }

// ---- lookup

// Tries the literal, the parameter, then the rest: the first that leads to a route wins.
Router::Node* Router::Match::find(Node& node, Rest rest) {
  if (!rest) return node.has_route() ? &node : nullptr;
  const std::string_view whole = *rest;
  const std::string_view segment = take_segment(rest);
  const bool is_encoded = segment.contains('%');
  const auto decoded = is_encoded ? percent_decode(segment) : std::nullopt;
  const std::string_view plain = decoded ? std::string_view(*decoded) : segment;
  if (Node* next = node.literal(plain))
    if (Node* found = find(*next, rest)) return found;
  if (!segment.empty())
    if (Node* found = find_as(node.parameter.get(), segment, rest)) return found;
  return find_as(node.rest.get(), whole, {});
}

Router::Node* Router::Match::find_as(Node* node, std::string_view value, Rest rest) {
  if (node == nullptr || !route.add_param(node->name, offset(value), value.size())) return nullptr;
  Node* found = find(*node, rest);
  if (found == nullptr) route.drop_param();
  return found;
}

std::string Router::Node::allowed() {
  std::string names;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const auto method = static_cast<Method>(i);
    if (!routes[i].handler && (method != Method::head || route(method) == nullptr)) continue;
    names += names.empty() ? "" : ", ";
    names += name_of(method);
  }
  if (routes[index_of(Method::options)].handler) return names;
  return names.empty() ? "OPTIONS" : names + ", OPTIONS";
}

// ---- dispatch

void Router::on_request(Exchange exchange) {
  const Request& request = exchange.request();
  const std::string_view path = request.path();
  ExchangeState& state = *ExchangeState::of(exchange);
  Match match(state.route(), path);
  Node* node = path.starts_with('/') ? match.find(*root_, path.substr(1)) : nullptr;
  if (node == nullptr) return refuse(std::move(exchange));
  if (Node::Route* route = node->route(request.method())) {
    state.route().set_pattern(route->pattern);
    return call(std::move(exchange), route->handler, route->options);
  }
  Fields fields;
  fields.set(FieldId::allow, node->allowed());
  if (request.method() == Method::options) {
    exchange.respond(Status::no_content, fields);
    return;
  }
  constexpr Refusal kRefusal = {Status::method_not_allowed, "the path does not have this method"};
  state.respond_refusal(kRefusal, {}, &fields);
}

void Router::call(Exchange exchange, OnRequest& handler, const RouteOptions& options) {
  if (!ExchangeState::of(exchange)->limit_body(options.max_body)) return;
  if (options.deadline > Nanos{0} && !exchange.set_deadline(options.deadline)) return;
  handler(std::move(exchange));
}

void Router::refuse(Exchange exchange) {
  if (otherwise_) return otherwise_(std::move(exchange));
  const Request& request = exchange.request();
  const bool asks_server = request.method() == Method::options && request.target() == "*";
  asks_server
      ? exchange.respond(Status::no_content)
      : ExchangeState::of(exchange)->respond_refusal({Status::not_found, "there is nothing here"});
}

}  // namespace spate::http
