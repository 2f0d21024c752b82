package Coro::Spate;
use 5.032;
use strict;
use warnings;
use Coro;
use Spate;

our $VERSION = $Spate::VERSION;

# The thread that ends the program, as nothing can make another one ready any more.
my $deadlock = $Coro::idle;

# Before each wait, those that are ready run once; while some are left, the loop does not wait.
my $busy = Spate::idle_ns sub { };
our $PREPARE = Spate::prepare sub {
    Coro::cede_notself if Coro::nready;
    Coro::nready ? $busy->start : $busy->stop;
};
$PREPARE->keepalive(0);

# When all threads wait, and none of them runs the loop.
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

Coro::Spate - Coro's threads beside spate's loop

=head1 SYNOPSIS

    use Coro;
    use Coro::Spate;

    async {
        Coro::Spate::timed_io_once \*STDIN, Spate::READ, 60 & Spate::READ or die "nothing was typed\n";
    };
    Spate::run;

=head1 DESCRIPTION

Before the loop waits, the threads that are ready run, each of them once; then it looks for events. If no thread
runs the loop and all of them wait, the loop is run for them: a program need not call C<Spate::run>, which returns
at once if there is nothing to wait for, though threads be ready.

L<Coro::AnyEvent> does the same for programs that use AnyEvent, with a timer, and needs no help.

A callback must not wait (C<Coro::unblock_sub> is for that).

=over

=item Coro::Spate::timer_once $seconds

The thread waits for so long.

=item Coro::Spate::timed_io_once $fh, $events [, $timeout]

The thread waits until the file handle is ready, or the time is over, and gets what has happened: of C<$events>, or
C<Spate::TIMER>.

=back

=head1 SEE ALSO

L<Coro>, L<Coro::EV>, L<Spate>.

=cut
