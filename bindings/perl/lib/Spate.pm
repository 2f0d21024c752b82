package Spate;
use 5.032;
use strict;
use warnings;

our $VERSION;
BEGIN { $VERSION = '0.1.0' }

# AnyEvent searches this list for a loaded loop before its own list.
BEGIN { push @AnyEvent::REGISTRY, ['Spate' => 'AnyEvent::Impl::Spate'] }

require XSLoader;
XSLoader::load('Spate', $VERSION);

our $DIED = sub { warn "Spate: error in callback (ignoring): $@" };

for my $kind (qw(IO Timer Periodic Signal Child Stat Idle Prepare Check Fork Async)) {
    no strict 'refs';
    @{"Spate::${kind}::ISA"} = 'Spate::Watcher';
}

sub periodic_ns($$$$) {
    my (undef, undef, $next) = @_;
    my $watcher = &_periodic_ns;
    $watcher->set($next->($watcher, now())) if $next;
    return $watcher;
}

# Called instead of the callback when a watcher with a reschedule function is due.
sub _call_rescheduled {
    $_[0]->set($_[0]->_next->($_[0], now()));
    $_[0]->start;
    goto &{$_[0]->cb};
}

sub periodic($$$$) {
    my $watcher = &periodic_ns;
    $watcher->start;
    return $watcher;
}

sub once($$$$) {
    my ($fh, $events, $timeout, $cb) = @_;
    my ($io, $timer);
    my $done = sub {
        undef $_ for $io, $timer, $_[0];    # $_[0] refers to it too, and the callback may run the loop.
        $cb->($_[1]);
    };
    $io = io($fh, $events, $done) if defined $fh;
    $timer = timer($timeout, 0, $done) if defined $timeout && $timeout >= 0;
    return;
}

sub feed_event($;$) { $_[0]->feed_event($_[1] // CUSTOM()) }

sub sleep($) {
    my ($seconds) = @_;
    select undef, undef, undef, $seconds if $seconds > 0;
    return;
}

package Spate::Watcher;

# In another thread a watcher is a reference to undef.
sub CLONE_SKIP { 1 }

sub invoke {
    my ($self, $events) = @_;
    local $@;
    return if eval { $self->cb->($self, $events // 0); 1 };
    my $error = $@;
    eval { $@ = $error; $Spate::DIED->() };
    return;
}

1;

__END__

=head1 NAME

Spate - a fast event loop

=head1 SYNOPSIS

    use Spate;

    # A readable descriptor.
    pipe my $reader, my $writer or die;
    my $io = Spate::io $reader, Spate::READ, sub {
        my ($watcher, $events) = @_;
        sysread $reader, my $line, 100;
        print "read $line";
    };

    # First after 0.01 seconds, then every 0.02.
    my $count = 0;
    my $timer = Spate::timer 0.01, 0.02, sub {
        syswrite $writer, "line " . ++$count . "\n";
    };

    my $signal = Spate::signal INT => sub { Spate::break };

    my $pid = fork // die;
    if ($pid == 0) { exec 'sh', '-c', 'exit 3' or die }
    my $child = Spate::child $pid, 0, sub {
        my ($watcher) = @_;
        print "$pid ended with ", $watcher->rstatus >> 8, "\n";
    };

    Spate::once undef, 0, 0.2, sub { Spate::break };

    Spate::run;   # until Spate::break, or until there is nothing left to wait for

=head1 DESCRIPTION

Spate is the event loop of the library spate, for Linux. Its interface follows L<EV> where that makes sense: most
programs that use EV's default loop only need the other name. It also is a loop for L<AnyEvent> and everything built on
that (see L<AnyEvent::Impl::Spate>), for L<Mojolicious> (L<Mojo::Reactor::Spate>), L<IO::Async>
(L<IO::Async::Loop::Spate>) and L<POE> (L<POE::Loop::Spate>).

A watcher is an object that is stopped when the last reference to it is gone. The reference may be dropped anywhere,
also in the watcher's callback. After that it is not called any more, even if its event is already pending.

Callbacks are called as C<< $cb->($watcher, $events) >>. Times are in seconds, and may have fractions.

System errors and invalid arguments die with a message that begins with C<Spate:>.

=head1 THE LOOP

A process has one loop.

=over

=item Spate::run [$flags]

Runs the loop: without flags until C<break>, or until no active watcher keeps it alive. C<Spate::RUN_ONCE> runs one
turn, which waits for an event; C<Spate::RUN_NOWAIT> runs one turn without waiting. May be called in callbacks. Returns
whether anything is left to wait for.

=item Spate::break [$how]

Makes the innermost C<run> return after this turn, or with C<Spate::BREAK_ALL> all of them. C<Spate::BREAK_CANCEL>
cancels it. Outside of C<run> it does nothing.

=item Spate::depth, Spate::iteration, Spate::pending_count, Spate::active_count, Spate::backend

Return the number of nested C<run>s; the number of times that the loop has polled; the number of pending events; the
number of watchers that keep the loop alive; the backend.

=item Spate::active

Returns a reference to an array of everything that keeps the loop alive. Each is a hash with C<kind> ("io", "timer", ...),
C<label> (a path, a process or signal number), C<count>, and C<fd> if it has a descriptor. It answers why C<run> does not
return.

=item Spate::now, Spate::time, Spate::now_update

C<now> returns the time since 1970 at the end of the last wait, from which timers count; C<time> returns the present
time. C<now_update> updates C<now>, for timers that are started after a long computation.

=item Spate::suspend, Spate::resume

Between the two calls, time does not pass for timers.

=item Spate::sleep $seconds

Sleeps.

=item Spate::once $fh, $events, $timeout, $cb->($events)

Calls C<$cb> once, when C<$fh> is ready (C<undef>: none) or the timeout has passed (C<undef> or negative: never), with
the event. There is no object to keep.

=item Spate::feed_event $watcher [, $events]

Calls the method.

=back

=head1 WATCHERS

Each function returns a new watcher, which is active. The variants with C<_ns> after the name return one that is not
started.

=over

=item Spate::io $fh, $events, $cb

Called when C<$fh>, a file handle or the number of a descriptor, is ready for C<Spate::READ> or C<Spate::WRITE>, or
both. Level-triggered. Any number of watchers may share a descriptor. If a descriptor cannot be watched, the watcher is
stopped and called with C<Spate::ERROR>. Methods: C<set($fh, $events)>, C<fh([$new])>, C<events([$new])>; with 0 events
the watcher pauses.

=item Spate::timer $after, $repeat, $cb

Called after C<$after> seconds, and if C<$repeat> is above 0, then every C<$repeat> seconds. Methods: C<set($after [,
$repeat])>; C<again([$repeat])>, which restarts the timer with C<$repeat> seconds (and stops one that does not repeat);
C<remaining>, C<repeat>.

=item Spate::periodic $at, $interval, $reschedule, $cb

Called at a time of the wall clock. Without an interval this is C<$at>, once. With one it is each time at which the time
minus C<$at> is a multiple of C<$interval>. If C<$reschedule> is not 0, C<< $reschedule->($watcher, $now) >> returns
the time; it is called before each call of C<$cb>, and must not change the watcher. Methods: C<set($at [, $interval])>,
C<at>.

=item Spate::signal $signal, $cb

Called when the process has received a signal, given by name or number. Methods: C<set($signal)>, C<signal>. For other
signals, handlers in C<%SIG> work too, and are called at once even while the loop waits: C<local $SIG{ALRM} = sub { die
... }> ends a C<run>.

=item Spate::child $pid, $trace, $cb

Called when a child process has ended (or, with C<$trace>, was stopped or continued). No other code may wait for it.
Methods: C<set($pid, $trace)>, C<pid>, C<rpid>, C<rstatus>, as in C<$?>.

=item Spate::stat $path, $interval, $cb

Called when the path, or the file that it names, has changed. C<$interval> is the polling interval where the kernel
does not report changes; 0 chooses one. Methods: C<set($path, $interval)>, C<path>, C<interval>. C<attr>, C<prev> and
C<stat> return the attributes as Perl's C<stat> does (without the blocks): the present ones, the previous ones, and the
present ones after another C<stat>. In scalar context they return whether the path exists.

=item Spate::idle $cb, Spate::prepare $cb, Spate::check $cb

Called when no other event is pending; before each wait; after each wait.

=item Spate::fork $cb

Called in the child of a fork, before the first turn there.

=item Spate::async $cb

Called after its method C<send> was called. C<is_sent> returns true until the loop has noticed the call; after that,
C<is_pending> does until the callback.

=back

All watchers have these methods:

=over

=item start, stop, is_active, is_pending, clear_pending

=item invoke([$events]), feed_event([$events])

C<invoke> calls the callback now; C<feed_event> queues an event as if it had happened.

=item cb([$new]), data([$new])

The callback, and any value for the program's use. Return the previous value.

=item priority([$new])

From -2 to 2, initially 0. Pending watchers with higher priority are called first.

=item keepalive([$new])

Whether the watcher keeps C<run> from returning while it is active; initially 1. Fork watchers never do.

=back

=head1 CALLBACKS THAT DIE

C<$Spate::DIED> is called with the error in C<$@>, and the loop continues. Its default is to warn. To leave C<run> with
an exception, call C<Spate::break>, and die after C<run>.

=head1 FORK

The child of a fork may use the loop and all watchers except child watchers, which are stopped there. No function has to
be called.

=head1 THREADS

Only the thread that loaded Spate may use it. In others every function dies, and watchers are references to C<undef>.

=head1 SEE ALSO

L<AnyEvent>, L<EV>.

=head1 LICENCE

MIT.

=cut
