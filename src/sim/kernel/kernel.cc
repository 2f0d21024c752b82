#include "sim/kernel/kernel.h"

#include <algorithm>

#include "sim/kernel/environment.h"
#include "sim/kernel/socket.h"
#include "spate/assert.h"

namespace spate::sim {

namespace {

constexpr std::size_t kMaxDescriptors = 1u << 20;

thread_local Kernel* here = nullptr;

}  // namespace

Kernel::Kernel(std::uint64_t seed, WorldInterface& world)
    : seed_(seed), world_(world), now_(kBeginning) {
  SPATE_ASSERT(here == nullptr);
  here = this;
}

Kernel::~Kernel() { here = nullptr; }

void Kernel::close_all() {
  for (Descriptor& one : files_) one.file = nullptr;
  open_counts_.clear();
}

void Kernel::note_local(std::string_view bytes) {
  note({.kind = EventKind::local, .from = host, .hash = hash_of(bytes), .size = bytes.size()});
}

Kernel* Kernel::current() { return here; }

void Kernel::at(Nanos time, ScheduledEvent event) {
  scheduled_.emplace(std::pair{std::max(time, now_), ++scheduled_count_}, std::move(event));
}

bool Kernel::run_due_events() {
  const std::pair<Nanos, std::uint64_t> end{now_, scheduled_count_};
  bool any = false;
  while (!scheduled_.empty() && scheduled_.begin()->first <= end) {
    auto first = scheduled_.extract(scheduled_.begin());
    first.mapped()();
    any = true;
  }
  return any;
}

// ---- threads

void Kernel::serve_this_thread() { here = this; }

std::uint64_t Kernel::start_thread(Thread::Body body, void* argument) {
  std::unique_ptr<Thread> started = Thread::start(*this, body, argument, late());
  if (started == nullptr) return 0;
  threads_.emplace(++thread_count_, std::move(started));
  return thread_count_;
}

void Kernel::join_thread(std::uint64_t number) {
  const Thread& thread = *threads_.at(number);
  wait([&thread] { return thread.has_ended(); }, kForever);
  threads_.erase(number);
}

Step Kernel::sleep(Nanos limit, Thread::Ready ready) {
  Thread* thread = Thread::current();
  if (thread == nullptr) return world_.step(limit);
  thread->wait(std::move(ready), limit);
  return Step::went_on;
}

int& Kernel::failed_polls() {
  Thread* thread = Thread::current();
  return thread == nullptr ? failed_polls_ : thread->failed_polls;
}

void Kernel::wait(const Thread::Ready& ready, Nanos limit) {
  if (Thread* thread = Thread::current()) return thread->wait(ready, limit);
  waiting_hosts_.push_back(host);
  while (!ready() && now_ < limit) {
    const bool goes_on = is_tearing_down ? world_.step_threads() : world_.step(limit) <= Step::idle;
    if (!goes_on) waits_in_vain();
  }
  waiting_hosts_.pop_back();
}

// Reported in every build: the World would wait for ever.
void Kernel::waits_in_vain() const {
  print_line(world_.describe());
  rule_broken(std::source_location::current(), "what code of a World waits for will happen",
              "nobody else in the World has anything left to do");
}

bool Kernel::is_waited_for(const Thread& thread) const {
  return std::ranges::any_of(
      waiting_hosts_, [&](int waiting) { return waiting == thread.host() || waiting == kNoHost; });
}

bool Kernel::is_inside(int of_host) const {
  return host == of_host || std::ranges::find(waiting_hosts_, of_host) != waiting_hosts_.end();
}

void Kernel::wait_for_notice(const void* condition) {
  Thread* thread = Thread::current();
  SPATE_ASSERT(thread != nullptr);
  thread->wait_for_notice(condition);
}

// Returns when a thread of the running host begins its work.
Nanos Kernel::late() {
  const auto delay = thread_delays_.find(host);
  if (delay == thread_delays_.end()) return now_;
  const auto range = static_cast<std::uint64_t>(delay->second.count()) + 1;
  const std::uint64_t drawn = draw(Purpose::thread, ++delay_count_);
  return now_ + Nanos{static_cast<std::int64_t>(drawn % range)};
}

void Kernel::notify(const void* condition, Notify whom) {
  for (const auto& [number, thread] : threads_) {
    if (!thread->waits_for(condition)) continue;
    thread->notify(late());
    if (whom == Notify::one) return;
  }
}

// ---- descriptors

long Kernel::may_open() const {
  const auto limit = limits_.find(host);
  if (limit == limits_.end()) return 0;
  return open_count(host) < limit->second.count ? 0 : -limit->second.error;
}

int Kernel::open(std::shared_ptr<File> file) {
  if (const long result = may_open(); result < 0) return static_cast<int>(result);
  return open_unlimited(std::move(file));
}

int Kernel::open_unlimited(std::shared_ptr<File> file) {
  // The lowest free number, as POSIX requires.
  const auto free = std::ranges::find(files_, nullptr, &Descriptor::file);
  const auto number = static_cast<std::size_t>(free - files_.begin());
  if (number == kMaxDescriptors) return -EMFILE;
  if (free == files_.end()) files_.emplace_back();
  files_[number] = {std::move(file), host};
  ++open_counts_[host];
  return kFirstDescriptor + static_cast<int>(number);
}

std::shared_ptr<File> Kernel::find(int fd) const {
  const auto number = static_cast<std::size_t>(fd - kFirstDescriptor);
  return fd >= kFirstDescriptor && number < files_.size() ? files_[number].file : nullptr;
}

int Kernel::host_of(int fd) const {
  return find(fd) == nullptr ? kNoHost
                             : files_[static_cast<std::size_t>(fd - kFirstDescriptor)].host;
}

long Kernel::close(int fd) {
  const std::shared_ptr<File> closing = find(fd);
  if (closing == nullptr) return -EBADF;
  Descriptor& closed = files_[static_cast<std::size_t>(fd - kFirstDescriptor)];
  --open_counts_[closed.host];
  closed = {};
  return 0;
}

std::size_t Kernel::open_count() const {
  std::size_t count = 0;
  for (const auto& [of_host, open] : open_counts_)
    if (of_host != kCrashed) count += open;
  return count;
}

std::size_t Kernel::open_count(int of_host) const {
  const auto found = open_counts_.find(of_host);
  return found == open_counts_.end() ? 0 : found->second;
}

void Kernel::on_memory_freed(int of_host) {
  for (const Descriptor& one : files_)
    if (one.file != nullptr && one.host == of_host) one.file->on_memory();
}

void Kernel::crash(int crashed, const std::function<void(Socket&)>& close) {
  for (const auto& [number, thread] : threads_)
    if (thread->host() == crashed) thread->crash();
  for (Descriptor& one : files_) {
    if (one.file == nullptr || one.host != crashed) continue;
    --open_counts_[crashed];
    ++open_counts_[kCrashed];
    one.host = kCrashed;
    const std::shared_ptr<Socket> socket = file_cast<Socket>(one.file);
    if (socket == nullptr) continue;
    // Objects of the crashed program may still use and close the number.
    close(*socket);
    one.file = std::make_shared<DeadFile>();
  }
}

}  // namespace spate::sim
