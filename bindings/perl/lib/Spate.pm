package Spate;
use 5.032;
use strict;
use warnings;

our $VERSION;
BEGIN { $VERSION = '0.1.0' }

# AnyEvent looks here for a loop that is loaded, before its own list.
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

# In place of the callback of a watcher that has such a function, when its time has come.
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
        undef $_ for $io, $timer, $_[0];    # The argument holds it, and the callback may run the loop.
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

# In another thread it is a reference to nothing.
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

    # A descriptor is ready: every second here, as something is written.
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

    Spate::run;   # until Spate::break, or nothing is left to wait for

=head1 DESCRIPTION

Spate is the event loop of the library spate, for Linux. Its interface is that of L<EV> where that makes sense: a
program that uses the default loop of EV mostly needs no more than another name. With it, L<AnyEvent> and whatever is
built on that (see L<AnyEvent::Impl::Spate>), L<Mojolicious> (L<Mojo::Reactor::Spate>), L<IO::Async>
(L<IO::Async::Loop::Spate>) and L<POE> (L<POE::Loop::Spate>) run on spate.

A watcher is an object that is active as long as somebody holds it: forget it, and it is stopped. It may be
forgotten anywhere, in its own callback too, and is not called after that, though its event has come already.

Callbacks are called as C<< $cb->($watcher, $events) >>. Times are seconds, and may have fractions.

Errors of the system and of the arguments die, with a message that begins with C<Spate:>.

=head1 THE LOOP

There is one loop for the process.

=over

=item Spate::run [$flags]

Runs the loop: without flags until C<break>, or until no active watcher keeps it alive. C<Spate::RUN_ONCE>: one
turn, which waits for an event; C<Spate::RUN_NOWAIT>: one turn, which does not. May be called in callbacks. Returns
whether something is left to wait for.

=item Spate::break [$how]

The innermost C<run> returns after this turn; with C<Spate::BREAK_ALL> all of them do. C<Spate::BREAK_CANCEL> takes it
back. Outside of C<run> it does nothing.

=item Spate::depth, Spate::iteration, Spate::pending_count, Spate::active_count, Spate::backend

How many C<run>s are in progress; how often the loop has looked for events; how many events are queued; how
many watchers keep the loop alive; what it waits with.

=item Spate::now, Spate::time, Spate::now_update

The time since 1970 as of the last wait, which timers count from; the time just now; and reads the clock anew, for timers
that are started after a long computation.

=item Spate::suspend, Spate::resume

Between the two the time of timers stands still.

=item Spate::sleep $seconds

Does nothing, for so long.

=item Spate::once $fh, $events, $timeout, $cb->($events)

Calls C<$cb> once, with what has happened: C<$fh> is ready (C<undef>: none), or the time is over (C<undef> or
negative: never). Nothing has to be held.

=item Spate::feed_event $watcher [, $events]

As the method.

=back

=head1 WATCHERS

Each function returns a new watcher, which is active; with C<_ns> after its name it is not, and
waits for C<start>.

=over

=item Spate::io $fh, $events, $cb

C<$fh>, a file handle or the number of a descriptor, is ready for C<Spate::READ> or C<Spate::WRITE>, or
both. Level-triggered. Any number of watchers may share a descriptor. A descriptor that cannot be watched is reported
with C<Spate::ERROR>, and the watcher is stopped. Methods: C<set($fh, $events)>, C<fh([$new])>, C<events([$new])>, where 0
is a pause.

=item Spate::timer $after, $repeat, $cb

After a time, and with C<$repeat> above 0 so often. Methods: C<set($after [, $repeat])>, C<again([$repeat])>, which
starts it to expire after C<$repeat> (and stops one that does not repeat), C<remaining>, C<repeat>.

=item Spate::periodic $at, $interval, $reschedule, $cb

The wall clock shows a time: C<$at> once, or with an interval whenever the time less C<$at> is a
multiple of it, or when C<< $reschedule->($watcher, $now) >> says, if that is not 0; it is asked before each call of
C<$cb>, and leaves the watcher itself alone. Methods: C<set($at [, $interval])>,
C<at>.

=item Spate::signal $signal, $cb

The process has received a signal, given by name or number. Methods: C<set($signal)>, C<signal>. Handlers in C<%SIG>
work besides, for other signals, and are called promptly also while the loop waits: C<local $SIG{ALRM} = sub { die
... }> ends a C<run>.

=item Spate::child $pid, $trace, $cb

A child process, which no other code waits for, has ended (or, with C<$trace>, was stopped or continued). Methods:
C<set($pid, $trace)>, C<pid>, C<rpid>, C<rstatus>, as in C<$?>.

=item Spate::stat $path, $interval, $cb

The path, or the file that it names, has changed. C<$interval>: how often to look where the kernel does not tell; 0
is a good choice. Methods: C<set($path, $interval)>, C<path>, C<interval>; C<attr>, C<prev> and C<stat>, which
return what C<stat> returns (without the blocks), now, before, and after another look; in scalar context whether
the path exists.

=item Spate::idle $cb, Spate::prepare $cb, Spate::check $cb

Nothing else is pending; before each wait; after each wait.

=item Spate::fork $cb

In a child of a fork, before its first turn.

=item Spate::async $cb

Somebody has called its method C<send>. C<is_sent> says so until the loop has noticed; then
C<is_pending> does.

=back

All of them have:

=over

=item start, stop, is_active, is_pending, clear_pending

=item invoke([$events]), feed_event([$events])

Calls the callback now; queues an event as if it had happened.

=item cb([$new]), data([$new])

What is called; anything that you want to find there. Return what was there before.

=item priority([$new])

-2 ... 2, initially 0. Those that are due together are called highest first.

=item keepalive([$new])

Whether C<run> goes on while it is active: initially 1. Those of forks never keep it going.

=back

=head1 CALLBACKS THAT DIE

C<$Spate::DIED> is called, with the error in C<$@>, and the loop goes on. Initially it warns. To leave C<run> by dying, call
C<Spate::break> and die behind it.

=head1 FORK

The child of a fork may use the loop and all watchers, but those of children, which are stopped there. Nothing has to
be called.

=head1 THREADS

Only the thread that has loaded Spate may use it; in others every function dies, and the watchers are
references to C<undef>.

=head1 SEE ALSO

L<AnyEvent>, L<EV>.

=head1 LICENCE

MIT.

=cut
