# Dropped watchers leak no memory. SPATE_LEAK_ROUNDS=1000 creates ten million watchers.
use strict;
use warnings;
use Test::More;
use Spate;

sub resident { open my $file, '<', '/proc/self/statm' or die; return (split ' ', <$file>)[1] * 4 }

$Spate::DIED = sub { };
pipe my $reader, my $writer;
my $count = 0;

sub churn {
    my @watchers;
    for my $i (1 .. 1000) {
        push @watchers, Spate::io($writer, Spate::WRITE, sub { ++$count; die [$i] if $i % 10 == 0 });
        push @watchers, Spate::timer(0, 0, sub { ++$count; die "x\n" if $i % 10 == 0 });
        push @watchers, Spate::timer(0, 0, sub { ++$count; my @kept = \(@_) });
        push @watchers, Spate::idle(sub { ++$count });
        push @watchers, Spate::periodic_ns(0, 1, 0, sub { ++$count });
        push @watchers, Spate::stat_ns("/$i", 0, sub { ++$count });
        push @watchers, Spate::signal_ns('USR1', sub { ++$count });
        push @watchers, Spate::async(sub { ++$count });
        $watchers[-1]->data([$i]);
        push @watchers, Spate::check(sub { ++$count });
        push @watchers, Spate::child_ns(1, 0, sub { ++$count });
    }
    Spate::run Spate::RUN_NOWAIT for 1 .. 2;
    eval { Spate::io([], 1, sub { }) };
    eval { Spate::timer(0, 0, undef) };
    return;
}

churn() for 1 .. 2;
my $before = resident();
churn() for 1 .. $ENV{SPATE_LEAK_ROUNDS} // 10;
cmp_ok resident() - $before, '<', 600, 'the memory in use stays the same';
cmp_ok $count, '>', 10_000;
is Spate::active_count, 0;
done_testing;
