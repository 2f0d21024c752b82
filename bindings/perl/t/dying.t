# Callbacks that die, that drop their watchers, and that run the loop.
use strict;
use warnings;
use Test::More;
use POSIX ();
use Spate;

my @died;
$Spate::DIED = sub { push @died, $@ };

# A watcher of each kind, with its event pending.
pipe my $reader, my $writer;
my %make = (
    io => sub { Spate::io $writer, Spate::WRITE, $_[0] },
    timer => sub { Spate::timer 0, 0, $_[0] },
    repeating => sub { Spate::timer 0, 0.001, $_[0] },
    periodic => sub { Spate::periodic Spate::time - 1, 0, 0, $_[0] },
    signal => sub { my $w = Spate::signal 'USR2', $_[0]; kill USR2 => $$; $w },
    child => sub {
        my $pid = fork // die;
        POSIX::_exit(0) if $pid == 0;
        Spate::child $pid, 0, $_[0];
    },
    stat => sub { my $w = Spate::stat '/', 0, $_[0]; $w->feed_event(Spate::STAT); $w },
    idle => sub { Spate::idle $_[0] },
    prepare => sub { Spate::prepare $_[0] },
    check => sub { Spate::check $_[0] },
    fork => sub { my $w = Spate::fork $_[0]; $w->feed_event(Spate::FORK); $w },
    async => sub { my $w = Spate::async $_[0]; $w->send; $w },
);

my $tick = Spate::timer 0.001, 0.001, sub { };    # A watchdog: ends the waits.
for my $kind (sort keys %make) {
    subtest "$kind: its callback dies" => sub {
        @died = ();
        my $watcher;
        $watcher = $make{$kind}->(sub { $watcher->stop; die "of $kind\n" });
        Spate::run Spate::RUN_ONCE until @died;
        is_deeply \@died, ["of $kind\n"];
    };
    subtest "$kind: its callback forgets it" => sub {
        my $calls = 0;
        my $watcher;
        $watcher = $make{$kind}->(sub { undef $watcher; ++$calls });
        Spate::run Spate::RUN_ONCE until $calls;
        Spate::run Spate::RUN_NOWAIT for 1 .. 3;
        is $calls, 1;
    };
    subtest "$kind: its callback forgets it, and dies" => sub {
        @died = ();
        my $watcher;
        $watcher = $make{$kind}->(sub { undef $watcher; undef $_[0]; die \@_ });
        Spate::run Spate::RUN_ONCE until @died;
        is ref $died[0], 'ARRAY';
    };
    subtest "$kind: its callback runs the loop" => sub {
        my ($inner, $depth) = (0, 0);
        my ($watcher, $timer);
        $watcher = $make{$kind}->(sub {
            $watcher->stop;    # The argument still refers to it.
            undef $watcher;
            $timer = Spate::timer 0, 0, sub { ++$inner; $depth = Spate::depth; Spate::break };
            Spate::run;
        });
        Spate::run Spate::RUN_ONCE until $inner;
        is $depth, 2;
        is Spate::depth, 0;
    };
    subtest "$kind: its callback forks, and the child goes on, and dies" => sub {
        @died = ();
        my ($watcher, $pid, $calls);
        $watcher = $make{$kind}->(sub {
            ++$calls;
            return undef $watcher if $calls > 1;
            return if $pid = fork // die;
            undef $watcher;
            die "in the child\n";
        });
        Spate::run Spate::RUN_ONCE until $calls;
        if (!$pid) {
            my $turns = 0;
            my $more = Spate::timer 0, 0.001, sub { ++$turns };
            Spate::run Spate::RUN_ONCE until $turns == 2;
            POSIX::_exit(!(@died == 1 && $died[0] eq "in the child\n" && $calls == 1));
        }
        undef $watcher;
        waitpid $pid, 0;
        is $?, 0;
    };
}

undef $tick;

subtest 'what is due besides is called in any case' => sub {
    @died = ();
    my $calls = 0;
    my @timers = map { my $i = $_; Spate::timer 0, 0, sub { ++$calls; die "$i\n" if $i % 3 == 0 } } 1 .. 300;
    Spate::run;
    is $calls, 300;
    is @died, 100;
};

subtest 'one that forgets the others is the last' => sub {
    my $calls = 0;
    my @timers;
    @timers = map { Spate::timer_ns 0, 0, sub { ++$calls; @timers = () } } 1 .. 300;
    $_->feed_event for @timers;
    Spate::run;
    is $calls, 1;
};

subtest 'a nested run takes over what is due' => sub {
    my @order;
    my @timers = map { my $i = $_; Spate::timer_ns 0, 0, sub { push @order, $i; Spate::run Spate::RUN_NOWAIT } } 1 .. 100;
    $_->feed_event for @timers;
    Spate::run Spate::RUN_NOWAIT;
    is_deeply \@order, [1 .. 100];
};

subtest 'a nested run may be left by dying' => sub {
    @died = ();
    my @order;
    my @timers = map { Spate::timer_ns 0, 0, $_ } sub {
        eval { local $SIG{USR1} = sub { die "signal\n" }; kill USR1 => $$; Spate::run; 1 } or push @order, $@;
        push @order, Spate::depth;
    }, sub { push @order, 'second' };
    $_->feed_event for @timers;
    Spate::run Spate::RUN_NOWAIT;
    is_deeply [sort @order], [1, 'second', "signal\n"];
    is_deeply \@died, [];
};

subtest 'break leaves one run, or all' => sub {
    my @left;
    my $nest;
    $nest = sub {
        my ($levels, $how) = @_;
        my $stay = Spate::timer 1000, 0, sub { push @left, 'stayed'; Spate::break };
        my $timer = Spate::timer 0, 0, $levels == 1
            ? sub { Spate::break $how }
            : sub { $nest->($levels - 1, $how); $stay->feed_event };
        Spate::run;
        push @left, $levels;
    };
    $nest->(3, Spate::BREAK_ALL);
    is_deeply \@left, [1, 2, 3];
    @left = ();
    $nest->(2, Spate::BREAK_ONE);
    is_deeply \@left, [1, 'stayed', 2];
    Spate::break;
    my $calls = 0;
    my $timer = Spate::timer 0, 0, sub { ++$calls };
    Spate::run;
    is $calls, 1, 'outside it does nothing';
};

subtest 'a break before the wait ends the turn, and the next one is whole' => sub {
    my $calls = 0;
    my $prepare = Spate::prepare sub { ++$calls; Spate::break };
    my $timer = Spate::timer 60, 0, sub { fail 'it waits' };
    Spate::run for 1 .. 3;
    is $calls, 3;
};

subtest 'what is reported may die, too' => sub {
    local $Spate::DIED = sub { ++$died[0]; die "again\n" };
    @died = (0);
    my @timers = map { Spate::timer 0, 0, sub { die "x\n" } } 1 .. 2;
    Spate::run;
    is $died[0], 2;
    $timers[0]->invoke;
    is $died[0], 3;
    local $Spate::DIED = sub { push @died, $@ };
    $timers[0]->invoke;
    is $died[1], "x\n", 'also of a callback that is invoked';
};

subtest 'an argument that forgets the watcher while it is looked at does no harm' => sub {
    package Forgetful { use overload '0+' => sub { $_[0]->(); 1 }, '""' => sub { $_[0]->(); 1 }, bool => sub { $_[0]->(); 1 } }
    pipe my $reader, my $writer;
    my $w;
    my $forgets = bless sub { undef $w }, 'Forgetful';
    my $periodic = sub { Spate::periodic_ns 0, 1, 0, sub { } };
    my $signal = sub { Spate::signal_ns 'USR1', sub { } };
    my $refused = 0;
    for my $case (
        [$make{timer}, sub { $w->set($forgets, 1) }], [$make{timer}, sub { $w->again($forgets) }],
        [$periodic, sub { $w->set($forgets) }], [$make{io}, sub { $w->events($forgets) }],
        [$make{io}, sub { $w->set($writer, $forgets) }], [$make{stat}, sub { $w->set('/', $forgets) }],
        [$signal, sub { $w->set($forgets) }], [$make{idle}, sub { $w->priority($forgets) }],
        [$make{idle}, sub { $w->keepalive($forgets) }], [$make{check}, sub { $w->feed_event($forgets) }],
    ) {
        my ($make, $use) = @$case;
        $w = $make->(sub { });
        ++$refused unless eval { $use->(); 1 };
    }
    is $refused, 10;
};

subtest 'what a destructor does while a callback dies leaves the error alone' => sub {
    package Evals { sub DESTROY { eval { 1 } } }
    @died = ();
    my ($w, $evals) = (undef, bless [], 'Evals');
    $w = Spate::timer 0, 0, sub { my $held = \$evals; undef $w; die "x\n" };
    undef $evals;
    Spate::run;
    is_deeply \@died, ["x\n"];
};

subtest 'an error that is false is one' => sub {
    package False { use overload bool => sub { 0 }, '""' => sub { '' }, fallback => 1 }
    @died = ();
    my $timer = Spate::timer 0, 0, sub { die bless [], 'False' };
    Spate::run;
    is ref $died[0], 'False';
};

subtest 'arguments may be kept and changed' => sub {
    my @kept;
    my @timers;
    for my $change (sub { push @kept, \$_[0], \$_[1] }, sub { $_[0] = $_[1] = 'x' }, sub { undef @_ }, sub { @kept = (@kept, \@_) },
        sub { require Scalar::Util; Scalar::Util::weaken($_[0]) }, sub { $_[0] = [] }, sub { shift; shift }) {
        push @timers, Spate::timer 0, 0, $change;
    }
    my $objects = join ' ', @timers;
    Spate::run Spate::RUN_ONCE for 1 .. 2;
    is join(' ', @timers), $objects;
    is ${$kept[0]}, $timers[0];
    is ${$kept[1]}, Spate::TIMER;
    is $kept[2][0], $timers[3];
};

subtest 'handlers of %SIG are called while the loop waits' => sub {
    my $parent = $$;
    my $pid = fork // die;
    if ($pid == 0) { select undef, undef, undef, 0.02; kill ALRM => $parent; require POSIX; POSIX::_exit(0) }
    my $timer = Spate::timer 60, 0, sub { fail 'too late'; Spate::break };
    local $SIG{ALRM} = sub { die "alarm\n" };
    ok !eval { Spate::run; 1 };
    is $@, "alarm\n";
    is Spate::depth, 0;
    local $SIG{ALRM} = sub { Spate::break };
    my $other = Spate::timer 0, 0, sub { kill ALRM => $$ };
    Spate::run;
    waitpid $pid, 0;
};

subtest 'a handler that was there before the module was loaded is called, too' => sub {
    my $code = 'BEGIN { $SIG{ALRM} = sub { print "handled\n"; exit 0 } } use Spate;'
        . '$t = Spate::timer 60, 0, sub {}; $p = $$; if (!fork) { select undef, undef, undef, 0.05; kill ALRM => $p; exit }'
        . 'Spate::run';
    is qx{$^X -Mblib -e '$code' 2>/dev/null}, "handled\n";
};

subtest 'exit in a callback ends the program, with its END blocks and watchers' => sub {
    my $code = 'use Spate; our @w = map { Spate::timer 0, 0, sub { exit 5 } } 1 .. 3; END { print "end\n" } Spate::run';
    is qx{$^X -Mblib -e '$code' 2>&1}, "end\n";
    is $? >> 8, 5;
};

subtest 'watchers that are left at the end are no trouble' => sub {
    my $code = 'use Spate; our $t = Spate::timer 1, 0, sub { $t }; my $u; $u = Spate::io *STDERR, 2, sub { $u };'
        . '$s = Spate::signal INT => sub { $s }; $x = Spate::async sub { }; $x->data($x); Spate::run Spate::RUN_NOWAIT; print "done\n"';
    is qx{$^X -Mblib -we 'no warnings "once"; $code' 2>&1}, "done\n";
    is $?, 0;
};

subtest 'destroying a watcher leaves $! and $@ alone' => sub {
    my $timer = Spate::timer 1, 0, sub { };
    $! = 17;
    $@ = 'x';
    undef $timer;
    is 0 + $!, 17;
    is $@, 'x';
};

is Spate::active_count, 0;
done_testing;
