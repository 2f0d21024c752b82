// Resolver: one loop's name resolution, and Question: a query.
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

#include "core/loop_local.h"
#include "net/names/name_channel.h"
#include "spate/net/resolver.h"
#include "spate/timer.h"
#include "sys/file.h"

namespace spate {

class Resolver;

class Question : private NameChannel::Asker {
 public:
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

 protected:
  Question(Loop& loop, std::string_view host, std::uint16_t port);
  virtual ~Question() { stop_asking(); }

  // Both families in one query, to get them sorted; or one query each, to get the first answer
  // early. Called once.
  void ask(Families families, bool apart);
  // No more on_news() follows.
  void stop_asking();
  // Called from the loop when there are addresses, or one family is known to have none. Inside,
  // everything is allowed.
  virtual void on_news() = 0;

  // The addresses since the last call.
  std::vector<Address> take_addresses() { return std::exchange(addresses_, {}); }
  bool waits_for(Families families) const { return (waiting_ & families) != 0; }
  bool is_answered() const { return waiting_ == 0; }
  // Why there is no address, or none of one family.
  std::error_code error() const { return error_; }

 private:
  friend class Resolver;

  void on_answer(NameChannel::Query& query, std::vector<Address> addresses,
                 std::error_code error) override;
  void answer(Families families, std::vector<Address> addresses, std::error_code error);
  bool answer_if_numeric();
  void ask_servers(NameChannel& channel);
  void deliver();

  std::string host_;
  std::uint16_t port_;
  Families wanted_ = 0;
  Families waiting_ = 0;
  bool apart_ = false;
  bool found_ = false;                // An address has come.
  std::size_t source_ = 0;            // The resolver's next source.
  NameChannel::Query* queries_[2]{};  // In flight.
  std::vector<Address> addresses_;
  std::error_code error_;
  Timer news_;
  Resolver* resolver_ = nullptr;  // While we are on its list.
  Question* next_ = nullptr;
  Question* previous_ = nullptr;
};

class Resolver final : public LoopLocal {
 public:
  // The loop's, created on first use. nullptr when memory runs out.
  static Resolver* of(Loop& loop) { return local_of<Resolver>(loop); }
  explicit Resolver(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  std::error_code configure(const ResolverOptions& options);

 private:
  friend class Question;

  // Questions that are left get no answer.
  void on_loop_end() override;

  void add(Question& question);
  void remove(Question& question);
  void look_up(Question& question);
  bool look_further(Question& question);
  std::vector<Address> look_into_hosts(const Question& question) const;
  void forget_if_unwanted();

  std::error_code open_channel(const ResolverOptions& options);
  std::error_code refresh();

  ResolverOptions options_;
  std::unique_ptr<NameChannel> channel_;
  sys::FileStamp stamp_;  // Of the configuration that the channel has read.
  Question* first_ = nullptr;
  std::size_t waiting_ = 0;  // Questions that are not answered yet.
};

}  // namespace spate
