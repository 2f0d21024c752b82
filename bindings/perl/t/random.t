# Random programs do everything that the manual allows, in any callback, and a model predicts the
# calls.
#
# For 2 seconds, or for SPATE_RANDOM_SECONDS; SPATE_RANDOM_SEED runs one program again.
use strict;
use warnings;
use Test::More;
use POSIX ();
use Socket;
use Time::HiRes ();
use Spate;

my ($seed, @trouble);

# The state of one watcher: the watcher itself; whether it was started, and neither was stopped nor
# expired; whether an event was fed; how many of its callbacks are in progress.
my (@known, @sockets, @kept, %once);
our $depth;
my ($budget, $died, $thrown, $calm, $last_id);

sub wrong { push @trouble, "seed $seed: @_"; return }
sub chance { rand() < $_[0] }
sub one_of { $_[rand @_] }

my %event_of = (
    io => Spate::READ | Spate::WRITE, timer => Spate::TIMER, periodic => Spate::PERIODIC, signal => Spate::SIGNAL,
    child => Spate::CHILD, stat => Spate::STAT, idle => Spate::IDLE, prepare => Spate::PREPARE, check => Spate::CHECK,
    fork => Spate::FORK, async => Spate::ASYNC,
);
my @kinds = sort keys %event_of;

sub short_lived {
    my $pid = fork // die;
    POSIX::_exit(3) if $pid == 0;
    return $pid;
}

my %make = (
    io => sub { Spate::io_ns one_of(@sockets), one_of(1, 2, 3), $_[0] },
    timer => sub { Spate::timer_ns one_of(-1, 0, 0.0002, 100), one_of(0, 0, 0.0003, 50), $_[0] },
    periodic => sub {
        my $way = int rand 3;
        return Spate::periodic_ns Spate::time - one_of(0, 1), $way && 0.0005, 0, $_[0] if $way < 2;
        return Spate::periodic_ns 0, 0, sub { $_[1] + 0.0004 }, $_[0];
    },
    signal => sub { Spate::signal_ns one_of(qw(USR1 USR2)), $_[0] },
    child => sub { Spate::child_ns short_lived(), one_of(0, 1), $_[0] },
    stat => sub { Spate::stat_ns one_of('/', '/nothing/there'), 0, $_[0] },
    idle => \&Spate::idle_ns, prepare => \&Spate::prepare_ns, check => \&Spate::check_ns,
    fork => \&Spate::fork_ns, async => \&Spate::async_ns,
);

# Callbacks refer to one, so that dropping a callback calls back too.
package Tripwire {
    sub DESTROY { local $@; main::some_operations(1) if main::chance(0.3) }
}

sub callback {
    my ($known) = @_;
    my $tripwire = chance(0.2) && bless [], 'Tripwire';
    my $version = ++$known->{version};
    return sub {
        my $held = $tripwire;
        wrong "$known->{name}: a callback that was replaced" if $version != $known->{version};
        called($known, @_);
    };
}

sub check_call {
    my ($known, $events) = @_;
    my $own = $event_of{$known->{kind}};
    my $name = $known->{name};
    return $known->{invoked} = 0 if $known->{invoked};
    wrong "$name was called, and forgotten before" if $known->{forgotten} && !$known->{in_progress} && !$known->{kept};
    wrong "$name was called with $events" if !$events || $events & ~($own | Spate::CUSTOM);
    if ($events & Spate::CUSTOM) {
        wrong "$name was not fed" unless $known->{fed};
        $known->{fed} = 0;
    }
    return unless $events & $own;
    wrong "$name was not started" unless $known->{started};
    follow($known);
}

# Watchers that expire report their own state; for others the model has it.
sub follow {
    my ($known) = @_;
    my $w = $known->{w} or return;
    if ($known->{kind} =~ /^(timer|periodic|child)$/) {
        $known->{started} &&= $w->is_active || $w->is_pending;
    } elsif (!!$w->is_active != !!$known->{started}) {
        wrong "$known->{name}: active is ", $w->is_active;
    }
}

# A watcher lives as long as a reference to the arguments of its callback.
sub keep_arguments {
    my ($known, $arguments) = @_;
    ++$known->{kept};
    push @kept, [$known, $arguments];
}

sub release {
    --$_->[0]{kept} for @kept;
    @kept = ();
}

sub called {
    my ($known, $watcher, $events) = @_;
    check_call($known, $events);
    ++$known->{calls};
    wrong 'depth is ', Spate::depth if Spate::depth != $depth;
    wrong "$known->{name} is another" if $known->{w} && $watcher != $known->{w};
    sysread $known->{w}->fh, my $bytes, 10 if $known->{w} && $known->{kind} eq 'io' && $events & Spate::READ;
    return if $calm || $depth > 4;
    local $known->{in_progress} = 1;
    keep_arguments($known, \@_) if chance(0.02);
    some_operations(int rand 4);
    $_[1] = undef if chance(0.1);
    return if !chance(0.1);
    ++$thrown;
    die chance(0.5) ? "thrown\n" : [];
}
$Spate::DIED = sub {
    wrong "died of $@" unless ref $@ || $@ eq "thrown\n";
    ++$died;
    some_operations(1);
};

sub add {
    return if @known > 14;
    my $kind = one_of(@kinds);
    my $known = {kind => $kind, name => $kind . ++$last_id, started => 0, fed => 0, forgotten => 0, in_progress => 0,
        invoked => 0, calls => 0, kept => 0, version => 0, priority => 0, keepalive => 1, data => undef};
    push @known, $known;
    $known->{w} = $make{$kind}->(callback($known));
    start($known) if chance(0.7);
}

sub start {
    my ($known) = @_;
    my $starts = eval { $known->{w}->start; 1 };
    $known->{fed} &&= $known->{w}->is_pending if $known->{kind} eq 'child';
    if (!$starts) {
        wrong "$known->{name}: $@" if $known->{kind} ne 'child' || $@ !~ /No child/;    # Its process may be gone.
        return;
    }
    $known->{started} = 1;
    wrong "$known->{name} was started, and is not active" unless $known->{w}->is_active;
}

sub stop {
    my ($known) = @_;
    $known->{w}->stop;
    $known->{started} = $known->{fed} = 0;
    wrong "$known->{name} was stopped, and is pending" if $known->{w}->is_pending;
    follow($known);
}

sub forget {
    my ($known) = @_;
    @known = grep { $_ != $known } @known;
    $known->{forgotten} = 1;
    undef $known->{w};
}

sub feed { $_[0]{fed} = 1; chance(0.5) ? $_[0]{w}->feed_event : Spate::feed_event $_[0]{w} }

sub drop {
    my ($known) = @_;
    my $pending = !!$known->{w}->is_pending;
    my $events = $known->{w}->clear_pending;
    wrong "$known->{name}: dropped $events" if $pending != !!$events || !($events & Spate::CUSTOM) != !$known->{fed};
    $known->{fed} = 0;
    follow($known);
}

sub set {
    my ($known) = @_;
    my $w = $known->{w};
    my $kind = $known->{kind};
    my %set = (
        io => sub { chance(0.5) ? $w->set(one_of(@sockets), one_of(1, 2, 3)) : $w->events(one_of(0 .. 3)) },
        timer => sub { chance(0.5) ? $w->set(one_of(0, 0.0002, 100), one_of(0, 0.001)) : $w->again(one_of(0, 0.0003)) },
        periodic => sub { $w->set(Spate::time, one_of(0, 0.0005)) },
        signal => sub { $w->set(one_of(qw(USR1 USR2))) },
        stat => sub { $w->set(one_of('/', '/tmp'), 0) },
    );
    my $set = $set{$kind} or return;
    my $was = $w->is_active;
    $set->();
    $known->{started} = 1 if $w->is_active;
    $known->{fed} &&= $w->is_pending;
    follow($known);
    wrong "$known->{name} was set, and is not active" if $was && !$w->is_active && $kind ne 'timer';
}

sub prioritize {
    my ($known) = @_;
    my $w = $known->{w};
    my $priority = int(rand 7) - 3;
    wrong "$known->{name} has another priority" if $w->priority($priority) != $known->{priority};
    $known->{priority} = $priority < -2 ? -2 : $priority > 2 ? 2 : $priority;
    $known->{fed} &&= $w->is_pending;
    follow($known);
}

sub keep {
    my ($known) = @_;
    my $keepalive = $known->{kind} eq 'fork' || one_of(0, 1);
    wrong "$known->{name}: keepalive" if $known->{w}->keepalive($keepalive) != $known->{keepalive};
    $known->{keepalive} = $keepalive;
    my $before = $known->{data};
    $known->{data} = chance(0.5) ? [chance(0.5) && bless [], 'Tripwire'] : undef;
    my $was = $known->{w}->data($known->{data});
    wrong "$known->{name} has other data" if ($was // 0) ne ($before // 0);
}

sub invoke {
    my ($known) = @_;
    $known->{invoked} = 1;
    local $known->{in_progress} = 1;
    $known->{w}->invoke(Spate::CUSTOM);
    wrong "$known->{name} was not invoked" if $known->{invoked};
}

sub look {
    my ($known) = @_;
    follow($known);
    wrong "$known->{name} was fed, and is not pending" if $known->{fed} && !$known->{w}->is_pending;
    wrong 'nothing is pending' if $known->{fed} && !Spate::pending_count;
}

sub run_loop {
    return if $depth > 3;
    local $depth = $depth + 1;
    my $guard = Spate::timer 0.0003, 0.0003, sub { Spate::break };
    Spate::run one_of(0, Spate::RUN_ONCE, Spate::RUN_NOWAIT, Spate::RUN_NOWAIT);
}

sub once {
    my $id = ++$last_id;
    $once{$id} = 0;
    Spate::once one_of(undef, @sockets), Spate::WRITE, one_of(0, 0.0005), sub {
        wrong 'once was called twice' if $once{$id}++;
        some_operations(1);
    };
}

sub send_signal {
    my $signal = one_of(POSIX::SIGUSR1, POSIX::SIGUSR2);
    kill $signal, $$ if grep { $_->{kind} eq 'signal' && $_->{started} && $_->{w} && $_->{w}->signal == $signal } @known;
}

# The child runs for a while, and reports its errors.
sub fork_here {
    return if $$ != $main::pid || chance(0.6);
    my $pid = fork // die;
    if ($pid == 0) {
        @trouble = ();
        my $notices_fork = Spate::idle_ns sub { };
        for (grep { $_->{kind} eq 'child' && $_->{w} } @known) {
            wrong "$_->{name} is active" if $_->{w}->is_active;
            $_->{started} = $_->{w}->is_pending;    # It has ended before.
            $_->{fed} &&= $_->{w}->is_pending;
        }
        eval { $budget = 10; some_operations(3); finish(); 1 } or wrong "died: $@";
        print STDERR "in a child: $_\n" for @trouble;
        POSIX::_exit(!!@trouble);
    }
    waitpid $pid, 0;
    wrong "the child of a fork: $?" if $?;
}

my %on_one = (
    start => \&start, stop => \&stop, forget => \&forget, feed => \&feed, drop => \&drop, set => \&set,
    prioritize => \&prioritize, keep => \&keep, invoke => \&invoke, look => \&look,
    replace => sub { $_[0]{w}->cb(callback($_[0])) },
    send => sub { $_[0]{w}->send if $_[0]{kind} eq 'async' },
);
my %on_none = (
    add => \&add, once => \&once, run => \&run_loop, signal => \&send_signal, fork => \&fork_here,
    write => sub { syswrite one_of(@sockets), 'x' },
    break => sub { Spate::break one_of(Spate::BREAK_ONE, Spate::BREAK_ALL, Spate::BREAK_CANCEL) },
    time => sub { Spate::suspend; Spate::now_update; Spate::resume },
    release => \&release,
);
my @names = ((sort keys %on_one) x 2, sort(keys %on_none), qw(add add run));

sub some_operations {
    my ($count) = @_;
    for (1 .. $count) {
        return if --$budget < 0;
        my $name = one_of(@names);
        print STDERR '  ' x $depth, "$name\n" if $ENV{SPATE_RANDOM_TRACE};
        if (my $do = $on_none{$name}) {
            $do->();
        } elsif (my $known = one_of(grep { $_->{w} } @known)) {
            $on_one{$name}->($known);
        }
    }
    return;
}

# Stops acting, and checks that pending events are delivered.
sub finish {
    $calm = 1;
    $budget = 0;
    Spate::resume;
    Spate::break Spate::BREAK_CANCEL;
    my @due = grep { $_->{w} && ($_->{fed} || $_->{kind} =~ /^(check|prepare)$/ && $_->{started}) } @known;
    $_->{calls} = 0 for @due;
    local $depth = $depth + 1;
    my $wake = Spate::timer 0, 0.0001, sub { };
    my $until = Time::HiRes::time() + 10;
    my $waits = sub { grep({ !$_->{calls} && !$_->{forgotten} } @due) || grep { !$_ } values %once };
    Spate::run Spate::RUN_ONCE while $waits->() && Time::HiRes::time() < $until;
    wrong 'some were due, and not called' if $waits->();
    forget($known[-1]) while @known;
    release();
}

sub run_program {
    ($seed) = @_;
    srand $seed;
    (@known, @kept, %once) = ();
    ($budget, $depth, $died, $thrown, $calm) = (int(5 + rand 150), 0, 0, 0, 0);
    @sockets = map { socketpair my $one, my $two, AF_UNIX, SOCK_STREAM, 0 or die; $_->blocking(0) for $one, $two; ($one, $two) } 1, 2;
    while ($budget > 0) {
        some_operations(1 + rand 6);
        run_loop();
    }
    finish();
    wrong "$thrown were thrown, $died reported" if $thrown != $died;
    wrong 'left are ', Spate::active_count if Spate::active_count;
    wrong 'pending are ', Spate::pending_count if Spate::pending_count;
    1 while waitpid(-1, POSIX::WNOHANG()) > 0;    # The children of stopped child watchers.
}

$main::pid = $$;
local $SIG{PIPE} = 'IGNORE';
local $SIG{USR1} = 'IGNORE';
local $SIG{USR2} = 'IGNORE';
my $programs = 0;
my $until = Time::HiRes::time() + ($ENV{SPATE_RANDOM_SECONDS} // 2);
my $next_seed = $ENV{SPATE_RANDOM_SEED} // int rand 2**31;
do {
    alarm 60;    # The seed of one that hangs is known then.
    local $SIG{ALRM} = sub { print STDERR "seed $seed hangs\n"; POSIX::_exit(1) };
    eval { run_program($next_seed++); 1 } or wrong "died: $@";
    ++$programs;
} until @trouble || $ENV{SPATE_RANDOM_SEED} || Time::HiRes::time() > $until;
alarm 0;
ok !@trouble, "$programs programs" or diag join "\n", @trouble;
done_testing;
