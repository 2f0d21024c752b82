# Coro's threads with the loop.
use strict;
use warnings;
use Test::More;

BEGIN { eval { require Coro; 1 } or plan skip_all => 'there is no Coro' }
use Coro;
use Coro::Spate;

subtest 'threads wait for times, without anybody who runs the loop' => sub {
    my @order;
    my @threads = map { my $i = $_; async { Coro::Spate::timer_once 0.005 * $i; push @order, $i } } 3, 1, 2;
    $_->join for @threads;
    is_deeply \@order, [1, 2, 3];
};

subtest 'threads wait for handles, for a time' => sub {
    pipe my $reader, my $writer;
    my $thread = async { Coro::Spate::timed_io_once $reader, Spate::READ, 60 };
    async { syswrite $writer, 'x' };
    is $thread->join, Spate::READ;
    sysread $reader, my $byte, 1;
    is Coro::Spate::timed_io_once($reader, Spate::READ, 0.001), Spate::TIMER;
};

subtest 'threads that are ready run while the loop has events, and the other way round' => sub {
    my ($cedes, $ticks) = (0, 0);
    my $timer = Spate::timer 0, 0.0001, sub { ++$ticks };
    my $thread = async { ++$cedes, cede until $ticks >= 3 && $cedes >= 10; Spate::break };
    Spate::run;
    cmp_ok $ticks, '>=', 3;
    cmp_ok $cedes, '>=', 10;
};

subtest 'threads of a lower priority have their turns' => sub {
    my $done = 0;
    my $thread = async { cede for 1 .. 5; $done = 1; Spate::break };
    $thread->prio(Coro::PRIO_LOW);
    my $guard = Spate::timer 60, 0, sub { Spate::break };
    Spate::run;
    ok $done;
};

subtest 'several threads run the loop' => sub {
    my @left;
    my @threads = map {
        my $i = $_;
        async {
            my $over;
            my $timer = Spate::timer 0.001 * $i, 0, sub { $over = 1 };
            Spate::run Spate::RUN_ONCE until $over;
            push @left, $i;
        }
    } 1 .. 3;
    $_->join for @threads;
    is_deeply [sort @left], [1, 2, 3];
    is Spate::depth, 0;
};

subtest 'a thread that is cancelled in a run is no trouble to others' => sub {
    my $thread = async { my $timer = Spate::timer 60, 0, sub { }; Spate::run };
    cede for 1 .. 3;
    is Spate::depth, 1;
    $thread->cancel;
    is Spate::depth, 0;
    Coro::Spate::timer_once 0.001;
    pass;
};

subtest 'a deadlock ends the program' => sub {
    my $output = qx{$^X -Mblib -e 'use Coro; use Coro::Spate; Coro::schedule; print "on\n"' 2>&1};
    like $output, qr/deadlock/;
    isnt $?, 0;
};

done_testing;
