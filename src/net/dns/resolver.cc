#include "net/dns/resolver.h"

#include <algorithm>
#include <cerrno>

#include "core/ownership.h"
#include "net/dns/hosts_file.h"
#include "spate/assert.h"
#include "spate/named_callback.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

// RFC 1035: 253 characters, and a trailing dot.
constexpr std::size_t kLongestName = 254;
// c-ares doubles the timeout with each try, in an int.
constexpr Nanos kLongestTimeout = std::chrono::minutes(2);
constexpr int kMaxTries = 10;

bool is_name(std::string_view host) {
  const auto is_no_part_of_names = [](unsigned char c) {  // char is signed on some processors only.
    return c <= ' ' || c == 0x7f || c == ':' || c == '\\';
  };
  return !host.empty() && host.size() <= kLongestName &&
         std::ranges::none_of(host, is_no_part_of_names);
}

// RFC 6761: must not be sent to a name server.
bool is_local(std::string_view host) {
  constexpr std::string_view kLocal = "localhost";
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.size() < kLocal.size()) return false;
  const std::string_view start = host.substr(0, host.size() - kLocal.size());
  return is_same_host(host.substr(start.size()), kLocal) && (start.empty() || start.ends_with('.'));
}

std::vector<Address> loopbacks(Families families, std::uint16_t port) {
  std::vector<Address> addresses;
  if ((families & kIpv6) != 0) addresses.push_back(Address::loopback_ipv6(port));
  if ((families & kIpv4) != 0) addresses.push_back(Address::loopback_ipv4(port));
  return addresses;
}

bool is_valid(const ResolverOptions& options) {
  return std::ranges::all_of(options.servers, &Address::is_ip) && options.timeout >= Nanos{0} &&
         options.timeout <= kLongestTimeout && options.cache.max_ttl >= Nanos{0} &&
         options.cache.negative_ttl >= Nanos{0} && options.tries >= 0 && options.tries <= kMaxTries;
}

}  // namespace

std::string Resolver::names_asked() const {
  std::string names;
  questions_.for_each(
      [&](const Question& question) { (names += names.empty() ? "" : " ") += question.host(); });
  return names;
}

void NameChannel::describe(const Node& node, ActiveInfo& info) {
  if (Resolver* resolver = Resolver::of(static_cast<NameChannel*>(node.context)->loop_))
    info.label = resolver->names_asked();
}

// ---- queries

Question::Question(Loop& loop, std::string_view host, std::uint16_t port)
    : host_(host),
      port_(port),
      news_(loop, named<Timer, ActiveKind::name_lookup>(bind<&Question::deliver>(this))) {}

void Question::ask(Families families, bool apart) {
  wanted_ = families;
  waiting_ = families;
  apart_ = apart;
  if (answer_if_numeric()) return;
  if (!is_name(host_)) return answer(families, {}, NameError::bad_name);
  Resolver* resolver = Resolver::of(news_.loop());
  if (resolver == nullptr) return answer(families, {}, sys::error_code(-ENOMEM));
  resolver_ = resolver;
  resolver_->add(*this);
  look_up();
}

bool Question::answer_if_numeric() {
  const Result<Address> address = Address::ip(host_, port_);
  if (address && (family_of(*address) & wanted_) != 0) {
    answer(wanted_, {*address}, {});
  } else if (address) {
    answer(wanted_, {}, NameError::no_address);
  } else if (address.error() == std::errc::no_such_device) {
    answer(wanted_, {}, address.error());
  } else {
    return false;
  }
  return true;
}

// Queries all families it waits for. IPv6 first: a race prefers its answer.
void Question::ask_servers(NameChannel& channel) {
  const Families families = waiting_;
  if (!apart_ || families != (kIpv4 | kIpv6)) {
    ask_server(channel, queries_[0], families);
  } else {
    ask_server(channel, queries_[0], kIpv6);
    ask_server(channel, queries_[1], kIpv4);
  }
}

void Question::ask_server(NameChannel& channel, NameChannel::Query*& query, Families families) {
  const NameCache::Answer* known = resolver_->known(host_, families);
  if (known == nullptr) return channel.ask(*this, query, host_, families, port_);
  std::vector<Address> addresses;
  for (const Address& address : known->addresses) addresses.push_back(address.with_port(port_));
  answer(families, std::move(addresses), known->error);
}

void Question::forget_queries() {
  for (NameChannel::Query*& query : queries_) {
    if (query != nullptr) query->asker = nullptr;
    query = nullptr;
  }
}

void Question::on_answer(NameChannel::Query& query, std::vector<Address> addresses,
                         std::error_code error) {
  *std::ranges::find(queries_, &query) = nullptr;
  if (resolver_ != nullptr) resolver_->learn(host_, query, addresses, error);
  answer(query.families, std::move(addresses), error);
}

// An error other than "no address" applies to both families.
void Question::answer(Families families, std::vector<Address> addresses, std::error_code error) {
  waiting_ &= ~families;
  if (!addresses.empty()) {
    found_ = true;
    addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
  } else if (!error_ || error_ == NameError::no_address) {
    error_ = error;
  }
  if (resolver_ != nullptr && waiting_ == 0) {
    if (!found_ && look_further()) return;
    resolver_->note_answered();
  }
  if (!news_.start(Nanos{0})) news_.feed();  // The answer must not be lost.
}

void Question::deliver() {
  if (resolver_ != nullptr) resolver_->forget_if_unwanted();
  on_news();
}

void Question::stop_asking() {
  news_.stop();
  if (resolver_ != nullptr) leave();
  waiting_ = 0;
}

void Question::leave() { std::exchange(resolver_, nullptr)->remove(*this); }

void Question::ask_again(NameChannel* channel, std::error_code error) {
  if (waiting_ == 0) return;
  error ? answer(waiting_, {}, error) : ask_servers(*channel);
}

// ---- the sources of a query

void Question::look_up() {
  if (const std::error_code error = resolver_->refresh()) return answer(wanted_, {}, error);
  if (look_further()) return;
  if (is_local(host_)) return answer(wanted_, loopbacks(wanted_, port_), {});
  answer(wanted_, {}, NameError::no_such_host);
}

// Asks the next source. False if no source is left.
bool Question::look_further() {
  NameChannel* const channel = resolver_->channel();
  if (channel == nullptr) return false;
  const std::string& sources = channel->sources();
  while (source_ < sources.size()) {
    const bool is_hosts_file = sources[source_++] == 'f';
    if (is_hosts_file) {
      std::vector<Address> addresses = look_into_hosts();
      if (addresses.empty()) continue;
      answer(wanted_, std::move(addresses), {});
      return true;
    }
    if (is_local(host_)) continue;
    waiting_ = wanted_;
    ask_servers(*channel);
    return true;
  }
  return false;
}

std::vector<Address> Question::look_into_hosts() const {
  std::string text;
  sys::read_file(resolver_->hosts_file().c_str(), text);
  std::vector<Address> addresses = addresses_in_hosts(text, host_, port_);
  std::erase_if(addresses, [this](const Address& one) { return (family_of(one) & wanted_) == 0; });
  return addresses;
}

// ---- the resolver

void Resolver::on_loop_end() {
  while (Question* question = questions_.first()) question->leave();
  channel_.reset();
}

// Repeats the unanswered part of each query.
void Resolver::on_fork() {
  if (channel_ == nullptr) return;
  questions_.for_each([](Question& each) { each.forget_queries(); });
  channel_.reset();
  if (waiting_ == 0) return;  // The next query opens another channel.
  const std::error_code error = open_channel(options_);
  questions_.for_each([&](Question& each) { each.ask_again(channel_.get(), error); });
}

std::error_code Resolver::configure(const ResolverOptions& options) {
  if (!is_valid(options)) return sys::error_code(-EINVAL);
  if (waiting_ > 0) return sys::error_code(-EBUSY);
  const std::error_code error = open_channel(options);
  if (!error) options_ = options;
  return error;
}

// Takes the file's stamp first, so that a change while reading is noticed the next time.
std::error_code Resolver::open_channel(const ResolverOptions& options) {
  const sys::FileStamp stamp = sys::stamp_of(options.resolv_conf.c_str());
  Result<std::unique_ptr<NameChannel>> channel = NameChannel::open(loop(), options);
  if (!channel) return channel.error();
  channel_ = std::move(*channel);
  cache_ = NameCache(options.cache.entries);
  stamp_ = stamp;
  return {};
}

// If the new configuration cannot be read, keeps the old one.
std::error_code Resolver::refresh() {
  if (channel_ == nullptr) return open_channel(options_);
  const bool may_change = channel_->is_idle();
  if (may_change && stamp_ != sys::stamp_of(options_.resolv_conf.c_str())) open_channel(options_);
  return {};
}

void Resolver::add(Question& question) {
  questions_.push_front(question);
  ++waiting_;
}

void Resolver::remove(Question& question) {
  SPATE_ASSERT(may_touch(loop()), kWrongThread);
  question.forget_queries();
  if (!question.is_answered()) --waiting_;
  question.unlink();
  forget_if_unwanted();
}

void Resolver::forget_if_unwanted() {
  if (waiting_ == 0 && channel_ != nullptr && !channel_->is_idle()) channel_->forget_all();
}

const NameCache::Answer* Resolver::known(const std::string& host, Families families) {
  return cache_.find(host, families, loop().now());
}

void Resolver::learn(const std::string& host, const NameChannel::Query& query,
                     const std::vector<Address>& addresses, std::error_code error) {
  const bool is_lasting = error == make_error_code(NameError::no_such_host) ||
                          error == make_error_code(NameError::no_address);
  if (error && !is_lasting) return;
  const Nanos ttl =
      error ? options_.cache.negative_ttl : std::min(query.ttl, options_.cache.max_ttl);
  if (ttl <= Nanos{0}) return;
  cache_.store(host, query.families, {addresses, error}, deadline_after(loop().now(), ttl));
}

}  // namespace spate
