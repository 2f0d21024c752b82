#include "spate/net/session.h"

#include <algorithm>

#include "base/list_visit.h"
#include "base/report_drained.h"
#include "core/user_code.h"
#include "spate/error.h"

namespace spate {

class SessionList::Visit final : public ListVisit<Visit, Session> {
 public:
  Visit(SessionList& list, Session* first) : ListVisit(list.visits_, first) {}

  static Session* next(const Session& session) { return session.next_; }
};

SessionList::SessionList(Loop& loop, const void* type)
    : type_(type),
      sweep_(loop, [this] { sweep(); }),
      strays_(loop, [this] { end_strays(); }),
      loop_ends_(loop, [this] { drop_done(); }) {
  loop_ends_.set_priority(kPriorityMin);  // After the program's own hooks.
}

SessionList::~SessionList() {
  drop_newcomers();
  Visit::detach(visits_);
  destroy_all(live_);
  destroy_all(ended_);
}

void SessionList::destroy_all(Session*& first) {
  while (first != nullptr) destroy(*first);
}

// Unlinks it first, because its destructor may destroy the list.
void SessionList::destroy(Session& session) {
  unlink(session);
  session.list_ = nullptr;
  delete &session;
}

// ---- begin and end of sessions

bool SessionList::drop_newcomers() {
  const Visit visit(*this, nullptr);
  while (visit.has_list() && pending_ != nullptr) {
    PendingSession* pending = pending_;
    pending->leave();
    delete pending;
  }
  return visit.has_list();
}

bool SessionList::enter(Session& session, Stream stream, std::unique_ptr<Address> client) {
  link(session);
  session.stream_ = std::move(stream);
  session.client_ = std::move(client);
  const Visit visit(*this, &session);
  session.on_open();
  if (!visit.is_at(session)) return false;
  session.start();
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
  session.is_in_on_closed_ = true;
  on_closed(session, error);
  if (!visit.is_at(session)) return;
  session.is_in_on_closed_ = false;
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
  Visit::pass(visits_, session);
  if (session.next_ != nullptr) session.next_->previous_ = session.previous_;
  (session.previous_ == nullptr ? first_of(session) : session.previous_->next_) = session.next_;
  if (!session.is_over_) --size_;
}

// The last that is done: they may own the list.
void SessionList::drop_done() { const auto gone = std::move(done_); }

void SessionList::sweep_soon() {
  if (!sweep_.start(Nanos{0})) sweep_.feed();
}

// A session in on_closed() stays: that may be running the loop that calls this.
void SessionList::sweep() {
  Visit visit(*this, ended_);
  while (Session* session = visit.take()) {
    if (!session->is_in_on_closed_) destroy(*session);
  }
  const auto is_drained = [&] { return visit.has_list() && empty() && pending_ == nullptr; };
  if (!is_drained()) return;
  strays_.stop();
  report_drained(done_, [](auto& done) { call_user("Sessions", done); }, is_drained);
}

// ---- operations on all sessions

bool SessionList::visit_each(Visitor visitor, void* context) {
  Session* session = live_;
  if (session == nullptr) return true;
  Visit visit(*this, session->next_);
  do visitor(*session, context);
  while ((session = visit.take()) != nullptr);
  return visit.has_list();
}

void SessionList::drain(Nanos grace, Function<void()> done) {
  drained_by_ = deadline_after(loop().now(), grace);
  ++drains_;
  if (done) {
    done_.push_back(std::move(done));
    loop_ends_.start();
  }
  if (stop_listening_) stop_listening_();
  if (pending_ != nullptr) watch_strays();
  const Visitor drain_one = [](Session& session, void*) { session.list_->drain(session); };
  if (visit_each(drain_one, nullptr) && empty()) sweep_soon();
}

// Calls on_drain() once for each drain(), even if a call causes others.
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
  if (!drop_newcomers()) return;
  const Visitor end_one = [](Session& session, void* context) {
    session.list_->end(session, *static_cast<std::error_code*>(context));
  };
  visit_each(end_one, &error);
}

// Ends sessions after the grace that have no open Stream which would end them.
void SessionList::end_strays() {
  if (!drop_newcomers()) return;
  const Visitor end_one = [](Session& session, void*) {
    if (!session.stream_.is_open()) session.list_->end(session, Error::deadline);
  };
  visit_each(end_one, nullptr);
}

}  // namespace spate
