#!/usr/bin/perl
# One row of AnyEvent's first table: half of the watchers watch one descriptor that is always ready,
# half are timers that expire at once; all are created, called once, and destroyed.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use systems;

my %arguments = (watchers => 1000, verify => 0, systems::arguments());
my $system = systems::load($arguments{system}, $arguments{module});
pipe my $reader, my $writer or die;

my $life = systems::compiled($system, <<'CODE');
sub {
    my ($fh, $pairs, $verify) = @_;
    my ($after, $events) = (0, 'w');
    my $left = 2 * $pairs;
    my $calls = 0;
    my $cb = sub { ++$calls; --$left or do { FINISH } };
    my @watchers;
    my %called;
    BEGIN_WAIT;
    my $resident = systems::resident();
    my $begin = systems::now();
    for my $i (1 .. $pairs) {
        push @watchers, IO;
        push @watchers, TIMER;
    }
    my $made = systems::now();
    my $grown = systems::resident() - $resident;
    my $ready = systems::now();
    WAIT;
    my $called = systems::now();
    FORGET;
    my $forgotten = systems::now();
    return ($grown, $made - $begin, $called - $ready, $forgotten - $called, $calls);
}
CODE

# The same, but each watcher has its own callback, and all of them must be called.
my $check = systems::compiled($system, <<'CODE');
sub {
    my ($fh, $pairs) = @_;
    my ($after, $events) = (0, 'w');
    my @watchers;
    my %called;
    my $of = sub {
        my ($i) = @_;
        return sub { $called{$i}++ or keys %called < 2 * $pairs or do { FINISH } };
    };
    BEGIN_WAIT;
    for my $i (1 .. $pairs) {
        my $cb = $of->("io $i");
        push @watchers, IO;
        $cb = $of->("timer $i");
        push @watchers, TIMER;
    }
    WAIT;
    FORGET;
    return (scalar keys %called, scalar grep { /timer/ && $called{$_} == 1 } keys %called);
}
CODE

my $pairs = $arguments{watchers} / 2;
if ($arguments{verify}) {
    my ($called, $timers) = $check->($writer, $pairs);
    systems::work('watchers_called', $called);
    systems::work('timers_called_once', $timers);
    exit 0;
}
# The first watcher loads modules: their memory must not count for the others.
$life->($writer, 100);
my ($bytes, $create, $invoke, $destroy) = $life->($writer, $pairs);
my $count = 2 * $pairs;
systems::metric('bytes', 'B', $bytes / $count);
systems::metric('create_us', 'us', 1e6 * $create / $count);
systems::metric('invoke_us', 'us', 1e6 * $invoke / $count);
systems::metric('destroy_us', 'us', 1e6 * $destroy / $count);
systems::ops('watcher', $count);
