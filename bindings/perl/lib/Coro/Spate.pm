package Coro::Spate;
use 5.032;
use strict;
use warnings;
use Coro;
use Spate;

our $VERSION = $Spate::VERSION;

# The thread that ends the program when no other can ever be ready.
my $deadlock = $Coro::idle;

# Before each wait, the ready threads run once; while threads are ready, the loop does not wait.
my $busy = Spate::idle_ns sub { };
our $PREPARE = Spate::prepare sub {
    Coro::cede_notself if Coro::nready;
    Coro::nready ? $busy->start : $busy->stop;
};
$PREPARE->keepalive(0);

# Runs the loop when all threads wait, and none of them runs it.
our $IDLE = Coro->new(sub {
    while () {
        Spate::run Spate::RUN_ONCE if Spate::active_count || Spate::pending_count;
        Coro::schedule if Coro::nready;
        $deadlock->schedule_to unless Spate::active_count || Spate::pending_count;
    }
});
$IDLE->desc('[Spate idle thread]');
$Coro::idle = $IDLE;

sub timer_once($) {
    my ($seconds) = @_;
    my $timer = Spate::timer $seconds, 0, Coro::rouse_cb;
    Coro::rouse_wait;
    return;
}

sub timed_io_once($$;$) {
    my ($fh, $events, $timeout) = @_;
    Spate::once $fh, $events, $timeout, Coro::rouse_cb;
    return Coro::rouse_wait;
}

1;

__END__

=head1 NAME

Coro::Spate - Coro's threads with spate's loop

=head1 SYNOPSIS

    use Coro;
    use Coro::Spate;

    async {
        Coro::Spate::timed_io_once \*STDIN, Spate::READ, 60 & Spate::READ or die "nothing was typed\n";
    };
    Spate::run;

=head1 DESCRIPTION

Before the loop waits, each ready thread runs once. If all threads wait and none of them runs the loop, this module
runs it, so a program need not call C<Spate::run>. That function returns at once if there is nothing to wait for, even
if threads are ready.

Programs that use AnyEvent do not need this module: L<Coro::AnyEvent> does the same, with a timer.

A callback must not block; see C<Coro::unblock_sub>.

=over

=item Coro::Spate::timer_once $seconds

Makes the thread wait.

=item Coro::Spate::timed_io_once $fh, $events [, $timeout]

Makes the thread wait until the file handle is ready or the timeout has passed. Returns the events out of C<$events>, or
C<Spate::TIMER>.

=back

=head1 SEE ALSO

L<Coro>, L<Coro::EV>, L<Spate>.

=cut
