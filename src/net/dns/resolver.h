// Resolver: the name resolution of one loop. Question: a query.
//
// The caller derives from Question, owns it, and may destroy it at any time, except inside a c-ares
// callback. No user code runs there: answers are delivered by a timer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/list.h"
#include "core/loop_local.h"
#include "net/dns/name_cache.h"
#include "net/dns/name_channel.h"
#include "spate/net/resolver.h"
#include "spate/timer.h"
#include "sys/file.h"

namespace spate {

class Resolver;

class Question : private NameChannel::Asker, public Linked<Question> {
 public:
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  bool is_answered() const { return waiting_ == 0; }

  // ---- called by the Resolver

  const std::string& host() const { return host_; }
  // No answer follows to the queries in progress.
  void forget_queries();
  // Repeats the unanswered part through a new channel. Without one, fails with `error`.
  void ask_again(NameChannel* channel, std::error_code error);
  // Leaves the Resolver, without a further answer.
  void leave();

 protected:
  Question(Loop& loop, std::string_view host, std::uint16_t port);
  virtual ~Question() { stop_asking(); }

  // Starts the query. Both families are queried together, which sorts the addresses; or separately
  // with `apart`, which returns the first answer early. Called once.
  void ask(Families families, bool apart);
  // Cancels; no more on_news() follows.
  void stop_asking();
  // Called from the loop when there are addresses, or one family is known to have none. Inside,
  // everything is allowed.
  virtual void on_news() = 0;

  // Returns the addresses since the last call.
  std::vector<Address> take_addresses() { return std::exchange(addresses_, {}); }
  bool waits_for(Families families) const { return (waiting_ & families) != 0; }
  // Returns why there is no address, or none of one family.
  std::error_code error() const { return error_; }

 private:
  void on_answer(NameChannel::Query& query, std::vector<Address> addresses,
                 std::error_code error) override;
  void answer(Families families, std::vector<Address> addresses, std::error_code error);
  bool answer_if_numeric();
  void look_up();
  bool look_further();
  std::vector<Address> look_into_hosts() const;
  void ask_servers(NameChannel& channel);
  void ask_server(NameChannel& channel, NameChannel::Query*& query, Families families);
  void deliver();

  std::string host_;
  std::uint16_t port_;
  Families wanted_ = 0;
  Families waiting_ = 0;
  bool apart_ = false;
  bool found_ = false;                // An address was found.
  std::size_t source_ = 0;            // Index of the next source.
  NameChannel::Query* queries_[2]{};  // In progress.
  std::vector<Address> addresses_;
  std::error_code error_;
  Timer news_;
  Resolver* resolver_ = nullptr;  // While it is in the resolver's list.
};

class Resolver final : public LoopLocal {
 public:
  // Returns the loop's Resolver, created on first use. nullptr when memory runs out.
  static Resolver* of(Loop& loop) { return local_of<Resolver>(loop); }
  explicit Resolver(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  // Returns the names that are looked up, separated by spaces.
  std::string names_asked() const;
  std::error_code configure(const ResolverOptions& options);

  // ---- called by Questions

  void add(Question& question);
  void remove(Question& question);
  // Counts a question that is answered, and stays in the list.
  void note_answered() { --waiting_; }
  // Cancels queries that no Question waits for, because they would keep the loop alive.
  void forget_if_unwanted();
  // Opens the channel, or another one if the configuration has changed.
  std::error_code refresh();
  // Returns nullptr if the last attempt to open it failed.
  NameChannel* channel() const { return channel_.get(); }
  const std::string& hosts_file() const { return options_.hosts; }
  const NameCache::Answer* known(const std::string& host, Families families);
  void learn(const std::string& host, const NameChannel::Query& query,
             const std::vector<Address>& addresses, std::error_code error);

 private:
  // Drops the remaining queries without an answer.
  void on_loop_end() override;
  // Repeats the queries: the sockets, and the answers to come, are the parent's.
  void on_fork() override;

  std::error_code open_channel(const ResolverOptions& options);

  ResolverOptions options_;
  NameCache cache_{0};
  std::unique_ptr<NameChannel> channel_;
  sys::FileStamp stamp_;  // The stamp of the file that the channel has read.
  List<Question> questions_;
  std::size_t waiting_ = 0;  // Queries without a complete answer.
};

}  // namespace spate
