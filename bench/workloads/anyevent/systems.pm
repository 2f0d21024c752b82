package systems;

# The systems of AnyEvent's tables: how to load each, and the expressions with which it creates a
# watcher of $fh or $after that calls $cb, waits until finish() was called, and destroys @watchers.
# They are compiled into the measured loops, without function calls.
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

# `model`: the loop that AnyEvent must have chosen; the version is that of the first module.
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
    # Without Heap, its queue of timers is a sorted array.
    io_async => {%any, load => ['IO::Async', 'Heap::Fibonacci', 'IO::Async::Loop', 'AnyEvent'], model => 'IOAsync'},
);

our %PACKAGES = (
    EV => 'libev-perl', Event => 'libevent-perl', Glib => 'libglib-perl', Tk => 'perl-tk',
    POE => 'libpoe-perl', 'Heap::Fibonacci' => 'libheap-perl',
    (map { $_ => 'libanyevent-perl' } 'AnyEvent', 'AnyEvent::Loop'),
    (map { $_ => 'libcoro-perl' } 'Coro', 'Coro::EV', 'Coro::AnyEvent'),
    (map { $_ => 'libio-async-perl' } 'IO::Async', 'IO::Async::Loop'),
);

sub arguments {
    my %arguments;
    while (@ARGV) { my ($name, $value) = splice @ARGV, 0, 2; $arguments{$name =~ s/^--//r} = $value }
    return %arguments;
}

sub leave_out { my ($why) = @_; $why =~ s/["\\\n].*//s; print qq({"left_out": "$why"}\n); exit 0 }

# Loads the system of that name, and returns it.
sub load {
    my ($name, $directory) = @_;
    my $system = $SYSTEMS{$name} or die "there is no system $name\n";
    unshift @INC, "$directory/blib/lib", "$directory/blib/arch" if defined $directory;
    local @ENV{'PERL_ANYEVENT_MODEL', 'PERL_ANYEVENT_VERBOSE'} = ($system->{model}, 0);
    delete $ENV{PERL_ANYEVENT_MODEL} unless defined $system->{model};
    for my $module (@{$system->{load}}) {
        next if eval "require $module; $module->import if '$module' eq 'POE'; 1";
        die $@ unless $@ =~ /^Can't locate \S+ in \@INC/;    # An installed module must load.
        my $package = $PACKAGES{$module};
        leave_out($package ? "$package is not installed" : "Debian has no package of $module");
    }
    my $model = $system->{model};
    if (defined $model && AnyEvent::detect() ne "AnyEvent::Impl::$model") {
        leave_out('Tk needs a display') if $model eq 'Tk' && !$ENV{DISPLAY};
        leave_out("AnyEvent has chosen $AnyEvent::MODEL");
    }
    my $module = $system->{load}[0];
    printf qq({"version": "%s", "library": "%s"}\n), $module->VERSION // '', $INC{$module =~ s{::}{/}gr . '.pm'};
    return $system;
}

# Replaces IO, TIMER and so on in the code by the system's expressions.
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
