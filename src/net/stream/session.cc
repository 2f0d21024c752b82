#include "spate/net/session.h"

#include <algorithm>

#include "core/user_code.h"
#include "spate/error.h"

namespace spate {

// A position in the list that stays valid when sessions are added or removed.
class SessionList::Visit {
 public:
  // Out of line, as g++ 12 else warns of a pointer that outlives the visit.
  [[gnu::noinline]] Visit(SessionList& list, Session* first)
      : list_(&list), next_(first), outer_(std::exchange(list.visits_, this)) {}
  ~Visit() {
    if (list_ != nullptr) list_->visits_ = outer_;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // nullptr at the end of the list, or at its destruction.
  Session* take() {
    if (list_ == nullptr || next_ == nullptr) return nullptr;
    return std::exchange(next_, next_->next_);
  }
  bool has_list() const { return list_ != nullptr; }
  bool is_at(const Session& session) const { return list_ != nullptr && next_ == &session; }

  Visit* outer() const { return outer_; }
  void leave_list() { list_ = nullptr; }
  void pass(const Session& session) {
    if (next_ == &session) next_ = session.next_;
  }

 private:
  SessionList* list_;
  Session* next_;
  Visit* const outer_;
};

SessionList::SessionList(Loop& loop, const void* type)
    : type_(type), sweep_(loop, [this] { sweep(); }), strays_(loop, [this] { end_strays(); }) {}

SessionList::~SessionList() {
  drop_newcomers();
  for (Visit* visit = visits_; visit != nullptr; visit = visit->outer()) visit->leave_list();
  destroy_all(live_);
  destroy_all(ended_);
}

void SessionList::destroy_all(Session*& first) {
  while (Session* session = first) delete session;
}

// ---- how a session comes and goes

void SessionList::drop_newcomers() {
  while (SessionNewcomer* newcomer = newcomers_) delete newcomer;
}

bool SessionList::enter(Session& session, Stream stream) {
  link(session);
  session.stream_ = std::move(stream);
  const Visit visit(*this, &session);
  session.on_open();
  if (!visit.is_at(session)) return false;
  session.stream_.start(session);
  if (is_draining()) drain(session);
  return visit.is_at(session);
}

void SessionList::retire(Session& session) {
  if (session.is_over_) return;
  move_to_ended(session);
  sweep_soon();
}

void SessionList::close(Session& session, OnClosed on_closed, std::error_code error) {
  move_to_ended(session);
  const Visit visit(*this, &session);
  session.is_being_told_ = true;
  on_closed(session, error);
  if (!visit.is_at(session)) return;
  session.is_being_told_ = false;
  sweep_soon();
}

void SessionList::move_to_ended(Session& session) {
  unlink(session);
  session.is_over_ = true;
  link(session);
}

void SessionList::link(Session& session) {
  Session*& first = first_of(session);
  session.list_ = this;
  session.previous_ = nullptr;
  session.next_ = first;
  if (first != nullptr) first->previous_ = &session;
  first = &session;
  if (!session.is_over_) ++size_;
}

void SessionList::unlink(Session& session) {
  for (Visit* visit = visits_; visit != nullptr; visit = visit->outer()) visit->pass(session);
  if (session.next_ != nullptr) session.next_->previous_ = session.previous_;
  (session.previous_ == nullptr ? first_of(session) : session.previous_->next_) = session.next_;
  if (!session.is_over_) --size_;
}

void SessionList::sweep_soon() {
  if (!sweep_.start(Nanos{0})) sweep_.feed();
}

// One that is being told stays: it may be running the loop that calls this.
void SessionList::sweep() {
  Visit visit(*this, ended_);
  while (Session* session = visit.take()) {
    if (!session->is_being_told_) delete session;
  }
  if (!visit.has_list() || !empty() || newcomers_ != nullptr) return;
  strays_.stop();
  if (!done_) return;
  std::move_only_function<void()> done = std::exchange(done_, {});
  call_user("Sessions", done);
}

// ---- what is done to all of them

bool SessionList::visit_each(Visitor visitor, void* context) {
  Session* session = live_;
  if (session == nullptr) return true;
  Visit visit(*this, session->next_);
  do visitor(*session, context);
  while ((session = visit.take()) != nullptr);
  return visit.has_list();
}

void SessionList::drain(Nanos grace, std::move_only_function<void()> done) {
  drained_by_ = deadline_after(loop().now(), grace);
  ++drains_;
  done_ = std::move(done);
  if (stop_listening_) stop_listening_();
  if (newcomers_ != nullptr) watch_strays();
  const Visitor drain_one = [](Session& session, void*) { session.list_->drain(session); };
  if (visit_each(drain_one, nullptr) && empty()) sweep_soon();
}

// Once for each drain(), whatever happens meanwhile.
void SessionList::drain(Session& session) {
  if (std::exchange(session.drain_, drains_) == drains_) return;
  if (session.stream_.is_open()) {
    session.stream_.set_deadline(grace_left());
  } else {
    watch_strays();
  }
  session.on_drain();
}

Nanos SessionList::grace_left() const { return std::max(drained_by_ - loop().now(), Nanos{1}); }

void SessionList::watch_strays() {
  if (!strays_.start(grace_left())) strays_.feed();
}

void SessionList::end(Session& session, std::error_code error) {
  session.stream_.abort();
  session.on_closed(error);
}

void SessionList::end_all(std::error_code error) {
  drop_newcomers();
  const Visitor end_one = [](Session& session, void* context) {
    session.list_->end(session, *static_cast<std::error_code*>(context));
  };
  visit_each(end_one, &error);
}

// The grace is over, and nothing else would end them.
void SessionList::end_strays() {
  drop_newcomers();
  const Visitor end_one = [](Session& session, void*) {
    if (!session.stream_.is_open()) session.list_->end(session, Error::deadline);
  };
  visit_each(end_one, nullptr);
}

}  // namespace spate
