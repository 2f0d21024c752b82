# The behaviour of each watcher.
use strict;
use warnings;
use Test::More;
use Spate;

sub soon { my ($code) = @_; return Spate::timer 0, 0, $code }

subtest 'an io is called while its descriptor is ready' => sub {
    pipe my $reader, my $writer;
    my @seen;
    my $io = Spate::io $reader, Spate::READ, sub {
        push @seen, $_[1];
        sysread $reader, my $byte, 1;
        Spate::break if @seen == 3;
    };
    isa_ok $io, 'Spate::IO';
    is Spate::run(Spate::RUN_NOWAIT), 1, 'it keeps the loop alive';
    is_deeply \@seen, [];
    syswrite $writer, 'abc';
    Spate::run;
    is_deeply \@seen, [(Spate::READ) x 3];
    is fileno $io->fh, fileno $reader;
    is $io->events, Spate::READ;
};

subtest 'an io takes a number, a glob, and another descriptor later' => sub {
    pipe my $reader, my $writer;
    my $calls = 0;
    my $io = Spate::io fileno $writer, Spate::WRITE, sub { ++$calls };
    is $io->fh, fileno $writer;
    Spate::run Spate::RUN_ONCE;
    is $calls, 1;
    $io->set(*STDERR, Spate::WRITE);
    is fileno $io->fh, 2;
    $io->set($writer, Spate::WRITE);
    $io->events(0);
    Spate::run Spate::RUN_NOWAIT;
    is $calls, 1, 'a pause';
    $io->events(Spate::WRITE);
    Spate::run Spate::RUN_ONCE;
    is $calls, 2;
};

subtest 'an io holds the file, and no longer' => sub {
    pipe my $reader, my $writer;
    my $fd = fileno $writer;
    my $io = Spate::io $writer, Spate::WRITE, sub { };
    undef $writer;
    ok -e "/proc/self/fd/$fd";
    undef $io;
    ok !-e "/proc/self/fd/$fd";
};

subtest 'several ios share a descriptor, and one of them can go' => sub {
    pipe my $reader, my $writer;
    my @calls = (0) x 3;
    my @io = map { my $i = $_; Spate::io $writer, Spate::WRITE, sub { ++$calls[$i] } } 0 .. 2;
    $io[1] = undef;
    Spate::run Spate::RUN_ONCE;
    is_deeply \@calls, [1, 0, 1];
};

subtest 'a bad descriptor is reported once' => sub {
    pipe my $reader, my $writer;
    my $fd = fileno $reader;
    close $reader;
    my @seen;
    my $io = Spate::io $fd, Spate::READ, sub { push @seen, $_[1] };
    Spate::run Spate::RUN_NOWAIT for 1 .. 3;
    is scalar @seen, 1;
    ok $seen[0] & Spate::ERROR;
    ok !$io->is_active;
};

subtest 'a timer expires once, or repeats' => sub {
    my $once = 0;
    my $often = 0;
    my $one = Spate::timer 0, 0, sub { ++$once };
    my $other = Spate::timer 0, 0.001, sub { Spate::break if ++$often == 4 };
    Spate::run;
    is $once, 1;
    is $often, 4;
    ok !$one->is_active;
    ok $other->is_active;
    is $other->repeat, 0.001;
};

subtest 'timers expire in the order of their times, and not before' => sub {
    my @order;
    Spate::now_update;
    my $began = Spate::now;
    my @timers = map { my $ms = $_; Spate::timer $ms / 1000, 0, sub { push @order, $ms } } 9, 3, 6, 1;
    Spate::run;
    is_deeply \@order, [1, 3, 6, 9];
    cmp_ok Spate::time - $began, '>=', 0.0089;
};

subtest 'a timer is set anew, started again, and says what is left' => sub {
    my $calls = 0;
    my $timer = Spate::timer_ns 1000, 0, sub { ++$calls };
    ok !$timer->is_active;
    $timer->start;
    cmp_ok $timer->remaining, '>', 900;
    $timer->set(0);
    Spate::run;
    is $calls, 1;
    $timer->again(0.001);
    ok $timer->is_active;
    Spate::run Spate::RUN_ONCE;
    $timer->again(0);
    ok !$timer->is_active, 'without a repeat it is stopped';
};

subtest 'times may be huge, negative and infinite' => sub {
    my $calls = 0;
    my @never = map { Spate::timer $_, 0, sub { ++$calls } } 1e12, 9**9**9;
    my @at_once = map { Spate::timer $_, 0, sub { ++$calls } } -1, -1e300, -9**9**9, '0', 0;
    Spate::run Spate::RUN_NOWAIT for 1 .. 3;
    is $calls, @at_once;
};

subtest 'a periodic comes at its time, at multiples, or when a function says' => sub {
    my @calls = (0, 0, 0);
    my $now = Spate::time;
    my $past = Spate::periodic $now - 5, 0, 0, sub { ++$calls[0] };
    my $often = Spate::periodic 0, 0.002, 0, sub { ++$calls[1] };
    my $says = Spate::periodic 0, 0, sub { $_[1] + 0.002 }, sub { Spate::break if ++$calls[2] == 3 };
    cmp_ok $often->at, '>', $now;
    Spate::run;
    is $calls[0], 1;
    cmp_ok $calls[1], '>=', 1;
    is $calls[2], 3;
    ok $says->is_active;
};

subtest 'one that is told its times can be stopped, fed, invoked, and get another callback' => sub {
    my @seen;
    my $says = Spate::periodic 0, 0, sub { $_[1] + 0.001 }, sub { push @seen, 1 };
    my $cb = $says->cb(sub { push @seen, 2; Spate::break });
    Spate::run;
    Spate::run;
    is_deeply \@seen, [2, 2];
    $says->stop;
    $cb->();
    $says->feed_event;
    Spate::run Spate::RUN_NOWAIT;
    $says->invoke;
    is_deeply \@seen, [2, 2, 1, 2, 2];
    ok !$says->is_active, 'which does not start it';
    my $forgotten = Spate::periodic 0, 0, sub { $_[1] + 0.001 }, sub { };
    undef $forgotten;
    is Spate::active_count, 0;
};

subtest 'signals are given by name or number, and shared' => sub {
    my @seen;
    my $one = Spate::signal USR1 => sub { push @seen, 'one' };
    my $two = Spate::signal 'SIGUSR1', sub { push @seen, 'two' };
    my $three = Spate::signal $one->signal, sub { push @seen, 'three' };
    kill USR1 => $$;
    Spate::run Spate::RUN_ONCE until @seen;
    is_deeply [sort @seen], [qw(one three two)];
};

subtest 'a child tells its status' => sub {
    my $pid = fork // die;
    if ($pid == 0) { require POSIX; POSIX::_exit(7) }
    my @seen;
    my $child = Spate::child $pid, 0, sub { @seen = ($_[0]->rpid, $_[0]->rstatus >> 8) };
    Spate::run;
    is_deeply \@seen, [$pid, 7];
    is $child->pid, $pid;
};

subtest 'a stat sees a file come' => sub {
    my $path = "/tmp/spate-perl-stat-$$";
    my @seen;
    my $stat = Spate::stat $path, 0, sub {
        push @seen, scalar $_[0]->prev, scalar $_[0]->attr;
        Spate::break;
    };
    is $stat->path, $path;
    is_deeply [$stat->attr], [];
    open my $file, '>', $path or die;
    Spate::run;
    is_deeply \@seen, ['', 1];
    my @by_perl = stat $path;
    my @by_spate = $stat->stat;
    is_deeply [@by_spate[0 .. 7]], [@by_perl[0 .. 7]];
    is @by_spate, 13;
    unlink $path;
};

subtest 'hooks come around the wait' => sub {
    my @order;
    my $idle = Spate::idle sub { push @order, 'idle' };
    my $prepare = Spate::prepare sub { push @order, 'prepare' };
    my $check = Spate::check sub { push @order, 'check' };
    my $timer = soon sub { push @order, 'timer' };
    Spate::run Spate::RUN_ONCE;
    is $order[0], 'prepare';
    is_deeply [sort @order[1 .. $#order]], [qw(check timer)], 'something was pending';
    @order = ();
    Spate::run Spate::RUN_ONCE;
    is_deeply [sort @order], [qw(check idle prepare)];
};

subtest 'an async is sent' => sub {
    my $calls = 0;
    my $async = Spate::async sub { ++$calls };
    ok !$async->is_sent;
    $async->send for 1 .. 5;
    ok $async->is_sent;
    Spate::run Spate::RUN_ONCE;
    ok !$async->is_sent, 'the loop has noticed';
    is $calls, 1, 'and what was sent before is merged';
};

subtest 'once calls once, with what has happened' => sub {
    pipe my $reader, my $writer;
    my @seen;
    Spate::once $writer, Spate::WRITE, 100, sub { push @seen, 'io', @_ };
    Spate::once $reader, Spate::READ, 0, sub { push @seen, 'timer', @_ };
    Spate::once undef, 0, 0, sub { push @seen, 'none', @_ };
    Spate::run;
    my %seen = @seen;
    is_deeply \%seen, {io => Spate::WRITE, timer => Spate::TIMER, none => Spate::TIMER};
};

subtest 'once calls once, though its callback runs the loop' => sub {
    pipe my $reader, my $writer;
    my $calls = 0;
    Spate::once $writer, Spate::WRITE, 100, sub { ++$calls; Spate::run Spate::RUN_NOWAIT for 1 .. 2 };
    Spate::run;
    is $calls, 1;
};

subtest 'the constants are there' => sub {
    my @names = qw(READ WRITE TIMER PERIODIC SIGNAL CHILD STAT IDLE PREPARE CHECK FORK ASYNC CUSTOM ERROR);
    my %values = map { (Spate->can($_) // die $_)->() => 1 } @names;
    is keys %values, @names;
};

subtest 'events are fed, seen and dropped' => sub {
    my @seen;
    my $timer = Spate::timer_ns 0, 0, sub { push @seen, $_[1] };
    $timer->feed_event;
    Spate::feed_event $timer, Spate::TIMER;
    ok $timer->is_pending;
    is Spate::pending_count, 1;
    is $timer->clear_pending, Spate::CUSTOM | Spate::TIMER;
    ok !$timer->is_pending;
    $timer->feed_event;
    Spate::run Spate::RUN_NOWAIT;
    $timer->invoke(42);
    is_deeply \@seen, [Spate::CUSTOM, 42];
};

subtest 'priorities decide about the order' => sub {
    my @order;
    my @timers = map { my $i = $_; Spate::timer_ns 0, 0, sub { push @order, $i } } -2 .. 2;
    $timers[$_ + 2]->priority($_) for -2 .. 2;
    is $timers[0]->priority, -2;
    $_->feed_event for @timers;
    Spate::run Spate::RUN_NOWAIT;
    is_deeply \@order, [2, 1, 0, -1, -2];
};

subtest 'what is not to keep the loop alive does not' => sub {
    my $timer = Spate::timer 1000, 0, sub { };
    ok $timer->keepalive;
    is $timer->keepalive(0), 1;
    ok !Spate::run, 'run returns at once';
    ok $timer->is_active;
    $timer->keepalive(1);
    is Spate::active_count, 1;
};

subtest 'callbacks and data are replaced' => sub {
    my @seen;
    my $first = sub { push @seen, 1 };
    my $timer = Spate::timer_ns 0, 0, $first;
    is $timer->cb, $first;
    is $timer->cb(sub { push @seen, 2 }), $first;
    $timer->feed_event;
    Spate::run Spate::RUN_NOWAIT;
    is_deeply \@seen, [2];
    is $timer->data, undef;
    is $timer->data([5]), undef;
    is_deeply $timer->data('x'), [5];
    is $timer->data, 'x';
};

subtest 'time stands still while it is suspended' => sub {
    my $began = Spate::time;
    Spate::now_update;
    my $timer = Spate::timer 1000, 0, sub { };
    Spate::suspend;
    Spate::sleep 0.05;
    Spate::resume;
    Spate::now_update;
    cmp_ok 1000 - $timer->remaining, '<', Spate::time - $began - 0.045;
    my $now = Spate::now;
    Spate::sleep 0.002;
    is Spate::now, $now, 'as it does within a turn';
    Spate::now_update;
    cmp_ok Spate::now, '>', $now;
};

subtest 'everything that keeps the loop alive is listed' => sub {
    pipe my $reader, my $writer;
    my $io = Spate::io $reader, Spate::READ, sub { };
    my $timer = Spate::timer 100, 0, sub { };
    is_deeply [map { $_->{kind} } @{Spate::active()}], ['io', 'timer'];
    is Spate::active->[0]{fd}, fileno $reader;
    is Spate::active->[1]{count}, 1;
    undef $io;
    is_deeply Spate::active, [{kind => 'timer', label => '', count => 1}];
    undef $timer;
    is_deeply Spate::active, [];
};

is Spate::depth, 0;
is Spate::active_count, 0, 'nothing is left';
done_testing;
