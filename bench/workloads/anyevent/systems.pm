package systems;

# The systems of AnyEvent's tables: how each is loaded, and the expressions with which it makes a
# watcher of $fh or $after that calls $cb, waits until finish() was called, and forgets @watchers. They
# are compiled into the loops that are timed, so that nothing stands between.
use strict;
use warnings;
use Time::HiRes ();

my %any = (
    io => 'AnyEvent->io(fh => $fh, poll => $events, cb => $cb)',
    timer => 'AnyEvent->timer(after => $after, cb => $cb)',
    begin => '$finish = AE::cv()',
    wait => '$finish->recv',
    finish => '$finish->send',
    forget => '@watchers = ()',
);
my %ae = (%any, io => 'AE::io($fh, $events eq "w", $cb)', timer => 'AE::timer($after, 0, $cb)');

sub ev_like {
    my ($module) = @_;
    return (
        load => [$module],
        io => qq{$module\::io(\$fh, \$events eq "w" ? $module\::WRITE() : $module\::READ(), \$cb)},
        timer => qq{$module\::timer(\$after, 0, \$cb)},
        begin => '1',
        wait => "$module\::run()",
        finish => "$module\::break()",
        forget => '@watchers = ()',
    );
}

# `model`: which AnyEvent has to have chosen; the version is that of the first module.
our %SYSTEMS = (
    spate => {ev_like('Spate')},
    spate_any => {%any, load => ['Spate', 'AnyEvent'], model => 'Spate'},
    spate_ae => {%ae, load => ['Spate', 'AnyEvent'], model => 'Spate'},
    ev => {ev_like('EV')},
    ev_any => {%any, load => ['EV', 'AnyEvent'], model => 'EV'},
    ev_ae => {%ae, load => ['EV', 'AnyEvent'], model => 'EV'},
    coro_ev => {%ae, load => ['EV', 'Coro', 'Coro::EV', 'Coro::AnyEvent', 'AnyEvent'], model => 'EV'},
    perl => {%ae, load => ['AnyEvent::Loop', 'AnyEvent'], model => 'Perl'},
    event => {
        load => ['Event'],
        io => 'Event->io(fd => $fh, poll => $events, cb => $cb)',
        timer => 'Event->timer(after => $after, cb => $cb)',
        begin => '1',
        wait => 'Event::loop()',
        finish => 'Event::unloop()',
        forget => '$_->cancel for splice @watchers',
        replace => '$timeouts[$i]->cancel',
    },
    event_any => {%any, load => ['Event', 'AnyEvent'], model => 'Event'},
    glib => {%any, load => ['Glib', 'AnyEvent'], model => 'Glib'},
    tk => {%any, load => ['Tk', 'AnyEvent'], model => 'Tk'},
    poe_select => {%any, load => ['POE', 'AnyEvent'], model => 'POE'},
    poe_event => {%any, load => ['Event', 'POE::Loop::Event', 'POE', 'AnyEvent'], model => 'POE'},
    # Without Heap its queue of timers is a sorted array.
    io_async => {%any, load => ['IO::Async', 'Heap::Fibonacci', 'IO::Async::Loop', 'AnyEvent'], model => 'IOAsync'},
);

sub arguments {
    my %arguments;
    while (@ARGV) { my ($name, $value) = splice @ARGV, 0, 2; $arguments{$name =~ s/^--//r} = $value }
    return %arguments;
}

sub leave_out { my ($why) = @_; $why =~ s/["\\\n].*//s; print qq({"left_out": "$why"}\n); exit 0 }

# The system of that name, loaded.
sub load {
    my ($name, $directory) = @_;
    my $system = $SYSTEMS{$name} or die "there is no system $name\n";
    unshift @INC, "$directory/blib/lib", "$directory/blib/arch" if defined $directory;
    local @ENV{'PERL_ANYEVENT_MODEL', 'PERL_ANYEVENT_VERBOSE'} = ($system->{model}, 0);
    delete $ENV{PERL_ANYEVENT_MODEL} unless defined $system->{model};
    for my $module (@{$system->{load}}) {
        eval "require $module; $module->import if '$module' eq 'POE'; 1" or leave_out("$module: $@");
    }
    my $model = $system->{model};
    if (defined $model && AnyEvent::detect() ne "AnyEvent::Impl::$model") {
        leave_out("AnyEvent has chosen $AnyEvent::MODEL");
    }
    my $module = $system->{load}[0];
    printf qq({"version": "%s", "library": "%s"}\n), $module->VERSION // '', $INC{$module =~ s{::}{/}gr . '.pm'};
    return $system;
}

# Code in which IO, TIMER and so on are the system's.
sub compiled {
    my ($system, $code) = @_;
    $code =~ s/\b(IO|TIMER|BEGIN_WAIT|WAIT|FINISH|FORGET|REPLACE)\b/$system->{$1 eq 'BEGIN_WAIT' ? 'begin' : lc $1} \/\/ '1'/ge;
    return eval "my \$finish; $code" // die $@;
}

sub now { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }
sub resident { open my $file, '<', '/proc/self/statm' or die; return 4096 * (split ' ', <$file>)[1] }
sub metric { printf qq({"metric": "%s", "unit": "%s", "value": %.6g}\n), @_ }
sub work { printf qq({"work": "%s", "value": %d}\n), @_ }
sub ops { printf qq({"ops": "%s", "value": %d}\n), @_ }

1;
