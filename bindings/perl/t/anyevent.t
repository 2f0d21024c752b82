# AnyEvent's contract.
use strict;
use warnings;
use Test::More;
use Spate;

eval { require AnyEvent } or plan skip_all => 'AnyEvent is not installed';
is AnyEvent::detect(), 'AnyEvent::Impl::Spate', 'it is found, as Spate was loaded';

my @interfaces = (
    ['AE', sub { AE::io($_[0], $_[1], $_[2]) }, sub { AE::timer($_[0], $_[1], $_[2]) },
        sub { AE::signal($_[0], $_[1]) }, sub { AE::idle($_[0]) }],
    ['AnyEvent', sub { AnyEvent->io(fh => $_[0], poll => $_[1] ? 'w' : 'r', cb => $_[2]) },
        sub { AnyEvent->timer(after => $_[0], interval => $_[1], cb => $_[2]) },
        sub { AnyEvent->signal(signal => $_[0], cb => $_[1]) }, sub { AnyEvent->idle(cb => $_[0]) }],
);

for (@interfaces) {
    my ($name, $io, $timer, $signal, $idle) = @$_;
    subtest $name => sub {
        pipe my $reader, my $writer;
        my $cv = AE::cv();
        my $arguments;
        my $w = $io->($writer, 1, sub { $arguments = @_; $cv->send('writable') });
        is $cv->recv, 'writable';
        is $arguments, 0, 'callbacks have no arguments';
        $cv = AE::cv();
        my $r = $io->(fileno $reader, 0, sub { sysread $reader, my $byte, 1; $cv->send($byte) });
        syswrite $writer, 'b';
        is $cv->recv, 'b', 'a number is a handle, too';
        undef $r;
        undef $w;

        $cv = AE::cv();
        my $n = 0;
        my $t = $timer->(0, 0.001, sub { $cv->send if ++$n == 3 });
        $cv->recv;
        is $n, 3;
        undef $t;
        $cv = AE::cv();
        my $once = 0;
        my $o = $timer->(-1, 0, sub { ++$once });
        my $end = $timer->(0.01, undef, sub { $cv->send });
        is $once, 0, 'not before the loop runs';
        $cv->recv;
        is $once, 1;

        $cv = AE::cv();
        my @s = map { $signal->('USR1', sub { $cv->send }) } 1 .. 2;
        kill USR1 => $$;
        $cv->recv;
        @s = ();

        $cv = AE::cv();
        my $i;
        $i = $idle->(sub { undef $i; $cv->send('idle') });
        is $cv->recv, 'idle';

        $cv = AE::cv();
        my $inner = 0;
        my $q = $timer->(0, 0, sub { ++$inner });
        my $p = $timer->(0, 0, sub { AnyEvent->_poll; $cv->send($inner) });
        my $wakes = $timer->(0, 0, sub { });
        $cv = AE::cv();
        is $cv->recv, 1, 'a callback may poll';

        local $Spate::DIED = sub { $cv->send("died of $@") };
        $cv = AE::cv();
        my $d = $timer->(0, 0, sub { die "x\n" });
        is $cv->recv, "died of x\n";

        my @watchers;
        my $calls = 0;
        @watchers = map { $timer->(0, 0, sub { ++$calls; @watchers = () }) } 1 .. 100;
        $cv = AE::cv();
        my $last = $timer->(0.002, 0, sub { $cv->send });
        $cv->recv;
        is $calls, 1, 'what is forgotten is not called';
    };
}

subtest 'children' => sub {
    my $make = sub { my $pid = fork // die; if ($pid == 0) { require POSIX; POSIX::_exit($_[0]) } $pid };
    my $cv = AE::cv();
    my %seen;
    my $any = AE::child(0, sub { $seen{any}{$_[0]} = $_[1] >> 8 });
    my @pids = map { $make->($_) } 4, 5;
    my @one = map { $cv->begin; AE::child($_, sub { $seen{$_[0]} = $_[1] >> 8; $cv->end }) } @pids, $pids[0];
    $cv->recv;
    is_deeply [@seen{@pids}], [4, 5];
    is_deeply $seen{any}, {$pids[0] => 4, $pids[1] => 5};
};

cmp_ok(abs(AE::time() - time), '<', 2);
cmp_ok(AnyEvent->now, '<=', AnyEvent->time);
is Spate::active_count, 0, "nothing is left";
done_testing;
