// Remote calls whose hooks and callbacks do everything that they may: make calls, resume others,
// remove hooks (themselves, too), unregister the running call, and free the pool or the base that
// calls them. The original crashes then; here each call ends at most once, and nothing leaks or is
// used after it was freed, which the sanitizers check.
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/http.h>
#include <event2/http_compat.h>
#include <event2/rpc.h>
#include <event2/rpc_struct.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "scarce_memory.h"

namespace {

using spate::dropin::ScarceMemory;

constexpr int kSteps = 60;
constexpr int kCallsMost = 200;

// A message of one byte.
struct Byte {
  unsigned char value = 0;
  bool is_gone = false;  // The program has freed the object that it was passed to.
};

Byte& use(void* message) {
  Byte& byte = *static_cast<Byte*>(message);
  EXPECT_FALSE(byte.is_gone);
  return byte;
}

void marshal(evbuffer* bytes, void* message) { evbuffer_add(bytes, &use(message).value, 1); }

int unmarshal(void* message, evbuffer* bytes) {
  unsigned char& value = use(message).value;
  return evbuffer_remove(bytes, &value, 1) == 1 && evbuffer_get_length(bytes) == 0 ? 0 : -1;
}

void clear(void* message) { use(message).value = 0; }
void* make(void*) { return new Byte; }
void destroy(void* message) { delete static_cast<Byte*>(message); }
int complete(void* message) { return static_cast<Byte*>(message)->value == 13 ? -1 : 0; }

// One server and one pool on a base, and a program that acts at random in each callback.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    base_ = event_init();  // evhttp_connection_new() uses the current base.
    http_ = evhttp_new(base_);
    evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(http_, "127.0.0.1", 0);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    rpcs_ = evrpc_init(http_);
    pool_ = evrpc_pool_new(base_);
  }

  ~World() {
    acts_ = false;
    free_pool();
    answer_all();
    free_rpcs();
    evhttp_free(http_);
    event_base_free(base_);
  }

  void run() {
    register_call();
    add_connection();
    for (int step = 0; step < kSteps; ++step) {
      act();
      event_base_loop(base_, EVLOOP_NONBLOCK);
    }
    EXPECT_LE(over_, made_);
  }

  int over() const { return over_; }

 private:
  struct Call {
    World* world;
    Byte request, reply;
    bool is_over = false;
  };
  struct Hook {
    World* world;
    void* owner;
    EVRPC_HOOK_TYPE type;
    void* handle = nullptr;
  };
  struct Paused {
    void* owner;
    void* context;
  };

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  // ---- operations, from anywhere

  void act() {
    switch (below(14)) {
      case 0:
        return add_hook(pool_);
      case 1:
        return add_hook(rpcs_);
      case 2:
        return remove_hook();
      case 3:
      case 4:
        return resume();
      case 5:
        return add_connection();
      case 6:
        return answer();
      case 7:
        return below(6) == 0 ? free_pool() : make_call();
      case 8:
        return below(8) == 0 ? free_rpcs() : make_call();
      case 9:
        return below(3) == 0 ? unregister_call() : register_call();
      case 10:
        return renew();
      default:
        return make_call();
    }
  }

  void act_inside() {
    while (acts_ && below(3) == 0) act();
  }

  void renew() {
    if (pool_ == nullptr) pool_ = evrpc_pool_new(base_);
    if (rpcs_ == nullptr) rpcs_ = evrpc_init(http_);
  }

  void add_connection() {
    if (pool_ == nullptr) return;
    evhttp_connection* connection = evhttp_connection_new("127.0.0.1", port_);
    evrpc_pool_add_connection(pool_, connection);
    if (pool_ == nullptr || below(8) != 0) return;
    evrpc_pool_set_timeout(pool_, below(2));
  }

  void register_call() {
    if (rpcs_ == nullptr || is_registered_) return;
    is_registered_ = true;
    EXPECT_EQ(evrpc_register_generic(rpcs_, "Byte", on_request, this, make, nullptr, destroy,
                                     unmarshal, make, nullptr, destroy, complete, marshal),
              0);
  }

  void unregister_call() {
    if (rpcs_ == nullptr) return;
    EXPECT_EQ(evrpc_unregister_rpc(rpcs_, "Byte"), is_registered_ ? 0 : -1);
    is_registered_ = false;
  }

  void make_call() {
    if (pool_ == nullptr || made_ == kCallsMost) return;
    auto call = std::make_unique<Call>(this);
    call->request.value = static_cast<unsigned char>(++made_);
    Call* made = call.get();
    calls_.push_back(std::move(call));
    EXPECT_EQ(evrpc_send_request_generic(pool_, &made->request, &made->reply, on_over, made, "Byte",
                                         marshal, clear, unmarshal),
              0);
  }

  void answer() {
    if (held_.empty()) return;
    evrpc_req_generic* request = held_.back();
    held_.pop_back();
    evrpc_request_done(request);
  }

  void answer_all() {
    while (!held_.empty()) answer();
  }

  // ---- hooks

  void add_hook(void* owner) {
    if (owner == nullptr || hooks_.size() > 12) return;
    hooks_.push_back(std::make_unique<Hook>(this, owner, below(2) ? EVRPC_INPUT : EVRPC_OUTPUT));
    Hook& hook = *hooks_.back();
    hook.handle = evrpc_add_hook(owner, hook.type, on_hook, &hook);
  }

  void remove_hook() {
    if (hooks_.empty()) return;
    const auto index = static_cast<std::size_t>(below(static_cast<int>(hooks_.size())));
    const Hook& hook = *hooks_[index];
    EXPECT_EQ(evrpc_remove_hook(hook.owner, hook.type, hook.handle), 1);
    EXPECT_EQ(evrpc_remove_hook(hook.owner, hook.type, hook.handle), 0);
    forget(index);
  }

  // The hook may be running: its memory must stay valid.
  void forget(std::size_t index) {
    forgotten_.push_back(std::move(hooks_[index]));
    hooks_.erase(hooks_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void forget_owner(void* owner) {
    for (std::size_t i = hooks_.size(); i-- > 0;) {
      if (hooks_[i]->owner == owner) forget(i);
    }
    std::erase_if(paused_, [owner](const Paused& paused) { return paused.owner == owner; });
  }

  void resume() {
    if (paused_.empty()) return;
    const Paused paused = paused_.back();
    paused_.pop_back();
    EXPECT_EQ(evrpc_resume_request(paused.owner, paused.context,
                                   below(3) == 0 ? EVRPC_TERMINATE : EVRPC_CONTINUE),
              0);
  }

  void free_pool() {
    evrpc_pool* pool = std::exchange(pool_, nullptr);
    if (pool == nullptr) return;
    forget_owner(pool);
    evrpc_pool_free(pool);
    for (const auto& call : calls_) call->request.is_gone = call->reply.is_gone = true;
  }

  void free_rpcs() {
    evrpc_base* rpcs = std::exchange(rpcs_, nullptr);
    if (rpcs == nullptr) return;
    forget_owner(rpcs);
    is_registered_ = false;
    evrpc_free(rpcs);
  }

  static int on_hook(void* context, evhttp_request*, evbuffer*, void* arg) {
    const Hook& hook = *static_cast<Hook*>(arg);
    World& world = *hook.world;
    void* owner = hook.owner;
    void* data = nullptr;
    std::size_t size = 0;
    if (evrpc_hook_find_meta(context, "key", &data, &size) == 0) {
      EXPECT_EQ(size, 3u);
    }
    evrpc_hook_add_meta(context, "key", "abc", 3);
    world.act_inside();
    const bool is_there = owner == world.pool_ || owner == world.rpcs_;
    if (!world.acts_) return EVRPC_CONTINUE;
    if (is_there && world.below(4) == 0) {
      world.paused_.push_back({owner, context});
      return EVRPC_PAUSE;
    }
    return world.below(6) == 0 ? EVRPC_TERMINATE : EVRPC_CONTINUE;
  }

  // ---- callbacks

  static void on_request(evrpc_req_generic* request, void* arg) {
    World& world = *static_cast<World*>(arg);
    static_cast<Byte*>(evrpc_get_reply(request))->value =
        static_cast<Byte*>(evrpc_get_request(request))->value;
    world.act_inside();
    world.held_.push_back(request);
    if (world.below(3) != 0) world.answer();
  }

  static void on_over(evrpc_status* status, void* request, void* reply, void* arg) {
    Call& call = *static_cast<Call*>(arg);
    EXPECT_FALSE(call.is_over);
    EXPECT_TRUE(request == &call.request && reply == &call.reply);
    if (status->error == EVRPC_STATUS_ERR_NONE && status->http_req != nullptr &&
        evhttp_request_get_response_code(status->http_req) == HTTP_OK) {
      EXPECT_EQ(call.reply.value, call.request.value);
    }
    call.is_over = true;
    ++call.world->over_;
    call.world->act_inside();
  }

  std::minstd_rand random_;
  event_base* base_;
  evhttp* http_;
  evrpc_base* rpcs_;
  evrpc_pool* pool_;
  ev_uint16_t port_ = 0;
  bool is_registered_ = false;
  bool acts_ = true;
  int made_ = 0;
  int over_ = 0;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<Hook>> hooks_, forgotten_;
  std::vector<Paused> paused_;
  std::vector<evrpc_req_generic*> held_;
};

TEST(Evrpc, RunOnceInLastSelectedPool) {
  event_base* base = event_base_new();
  evrpc_pool* pool = evrpc_pool_new(base);
  evrpc_pool* other = evrpc_pool_new(base);
  Byte request, reply;
  evrpc_request_wrapper* call = evrpc_make_request_ctx(
      nullptr, &request, &reply, "Byte", marshal, clear, unmarshal,
      [](evrpc_status*, void*, void*, void*) { FAIL(); }, nullptr);
  EXPECT_EQ(evrpc_make_request(call), -1);
  evrpc_request_set_pool(call, pool);
  EXPECT_EQ(evrpc_make_request(call), 0);
  EXPECT_EQ(evrpc_make_request(call), -1);
  evrpc_request_set_pool(call, other);
  EXPECT_EQ(evrpc_request_get_pool(call), other);
  evrpc_pool_free(other);
  evrpc_pool_free(pool);  // The call waits in it.
  event_base_free(base);
}

// ---- without memory

int on_any_hook(void*, evhttp_request*, evbuffer*, void*) { return EVRPC_CONTINUE; }
void on_any_request(evrpc_req_generic* request, void*) { evrpc_request_done(request); }
void on_any_end(evrpc_status*, void*, void*, void* over) { ++*static_cast<int*>(over); }

// Returns whether all steps succeeded, with memory for `most` blocks.
bool prepare(ScarceMemory& memory, evhttp* http, int most) {
  memory.allow(most);
  evrpc_base* rpcs = evrpc_init(http);
  evrpc_pool* pool = evrpc_pool_new(nullptr);
  bool done = rpcs != nullptr && pool != nullptr;
  if (rpcs != nullptr) {
    done &= evrpc_register_generic(rpcs, "Byte", on_any_request, nullptr, make, nullptr, destroy,
                                   unmarshal, make, nullptr, destroy, complete, marshal) == 0;
    done &= evrpc_add_hook(rpcs, EVRPC_INPUT, on_any_hook, nullptr) != nullptr;
  }
  if (pool != nullptr) {
    Byte request, reply;
    int over = 0;
    const int result = evrpc_send_request_generic(pool, &request, &reply, on_any_end, &over, "Byte",
                                                  marshal, clear, unmarshal);
    EXPECT_EQ(over, result == 0 ? 0 : 1);  // There is no connection.
    done &= result == 0;
  }
  done &= !memory.is_denied();
  memory.allow_all();
  if (rpcs != nullptr) evrpc_free(rpcs);
  if (pool != nullptr) evrpc_pool_free(pool);
  return done;
}

TEST(Evrpc, LeakNothingWhenMemoryRunsOut) {
  ScarceMemory memory;
  event_base* base = event_base_new();
  evhttp* http = evhttp_new(base);
  const int before = memory.blocks();
  int most = 0;
  for (; !prepare(memory, http, most); ++most) {
    ASSERT_LT(most, 100);
    EXPECT_EQ(memory.blocks(), before) << most;
  }
  EXPECT_GT(most, 5);
  EXPECT_EQ(memory.blocks(), before);
  evhttp_free(http);
  event_base_free(base);
}

// A long run uses thousands.
int seeds() {
  const char* wanted = std::getenv("SPATE_RPC_SEEDS");
  return wanted != nullptr ? std::atoi(wanted) : 150;
}

TEST(Evrpc, SurviveRandomHooksAndCallbacks) {
  int over = 0;
  for (int seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    World world(static_cast<unsigned>(seed));
    world.run();
    over += world.over();
    if (HasFailure()) return;
  }
  EXPECT_GT(over, seeds());
}

}  // namespace
