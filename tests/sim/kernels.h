// System calls of two kernels, the system's and a World's, for comparison.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
decltype(::close) spate_sim_close;
decltype(::pipe2) spate_sim_pipe2;
decltype(::socketpair) spate_sim_socketpair;
decltype(::socket) spate_sim_socket;
decltype(::bind) spate_sim_bind;
decltype(::listen) spate_sim_listen;
decltype(::connect) spate_sim_connect;
decltype(::accept4) spate_sim_accept4;
decltype(::shutdown) spate_sim_shutdown;
decltype(::poll) spate_sim_poll;
decltype(::read) spate_sim_read;
decltype(::write) spate_sim_write;
decltype(::recv) spate_sim_recv;
decltype(::send) spate_sim_send;
decltype(::recvmsg) spate_sim_recvmsg;
decltype(::sendmsg) spate_sim_sendmsg;
decltype(::sendto) spate_sim_sendto;
decltype(::sendmmsg) spate_sim_sendmmsg;
decltype(::recvmmsg) spate_sim_recvmmsg;
decltype(::getsockopt) spate_sim_getsockopt;
decltype(::setsockopt) spate_sim_setsockopt;
decltype(::getsockname) spate_sim_getsockname;
decltype(::getpeername) spate_sim_getpeername;
decltype(::epoll_create1) spate_sim_epoll_create1;
decltype(::epoll_ctl) spate_sim_epoll_ctl;
decltype(::epoll_wait) spate_sim_epoll_wait;
decltype(::epoll_pwait2) spate_sim_epoll_pwait2;
decltype(::eventfd) spate_sim_eventfd;
decltype(::fcntl) spate_sim_fcntl;
decltype(::fstat) spate_sim_fstat;
}

namespace spate::testing {

struct Calls {
  decltype(&::close) close;
  decltype(&::pipe2) pipe2;
  decltype(&::socketpair) socketpair;
  decltype(&::socket) socket;
  decltype(&::bind) bind;
  decltype(&::listen) listen;
  decltype(&::connect) connect;
  decltype(&::accept4) accept4;
  decltype(&::shutdown) shutdown;
  decltype(&::poll) poll;
  decltype(&::read) read;
  decltype(&::write) write;
  decltype(&::recv) recv;
  decltype(&::send) send;
  decltype(&::recvmsg) recvmsg;
  decltype(&::sendmsg) sendmsg;
  decltype(&::sendto) sendto;
  decltype(&::sendmmsg) sendmmsg;
  decltype(&::recvmmsg) recvmmsg;
  decltype(&::getsockopt) getsockopt;
  decltype(&::setsockopt) setsockopt;
  decltype(&::getsockname) getsockname;
  decltype(&::getpeername) getpeername;
  decltype(&::epoll_create1) epoll_create1;
  decltype(&::epoll_ctl) epoll_ctl;
  decltype(&::epoll_wait) epoll_wait;
  decltype(&::epoll_pwait2) epoll_pwait2;
  decltype(&::eventfd) eventfd;
  decltype(&::fcntl) fcntl;
  decltype(&::fstat) fstat;
};

inline const Calls kReal{::close,      ::pipe2,        ::socketpair,  ::socket,        ::bind,
                         ::listen,     ::connect,      ::accept4,     ::shutdown,      ::poll,
                         ::read,       ::write,        ::recv,        ::send,          ::recvmsg,
                         ::sendmsg,    ::sendto,       ::sendmmsg,    ::recvmmsg,      ::getsockopt,
                         ::setsockopt, ::getsockname,  ::getpeername, ::epoll_create1, ::epoll_ctl,
                         ::epoll_wait, ::epoll_pwait2, ::eventfd,     ::fcntl,         ::fstat};
inline const Calls kSimulated{
    spate_sim_close,      spate_sim_pipe2,       spate_sim_socketpair,   spate_sim_socket,
    spate_sim_bind,       spate_sim_listen,      spate_sim_connect,      spate_sim_accept4,
    spate_sim_shutdown,   spate_sim_poll,        spate_sim_read,         spate_sim_write,
    spate_sim_recv,       spate_sim_send,        spate_sim_recvmsg,      spate_sim_sendmsg,
    spate_sim_sendto,     spate_sim_sendmmsg,    spate_sim_recvmmsg,     spate_sim_getsockopt,
    spate_sim_setsockopt, spate_sim_getsockname, spate_sim_getpeername,  spate_sim_epoll_create1,
    spate_sim_epoll_ctl,  spate_sim_epoll_wait,  spate_sim_epoll_pwait2, spate_sim_eventfd,
    spate_sim_fcntl,      spate_sim_fstat};

// The simulated kernel raises no SIGPIPE.
class WithoutSigpipe {
 public:
  WithoutSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutSigpipe() { ::signal(SIGPIPE, before_); }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sighandler_t before_;
};

}  // namespace spate::testing
