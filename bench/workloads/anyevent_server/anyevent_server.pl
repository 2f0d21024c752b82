#!/usr/bin/perl
# One row of AnyEvent's second table: each server reads from a socket and has a timeout of an hour,
# which each received byte replaces; tokens go from one server to another, at random.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../anyevent";
use systems;
use Socket;

sub connected { socketpair my $one, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die; return ($one, $other) }

my %arguments = (servers => 100, active => 10, requests => 1000, systems::arguments());
my $system = systems::load($arguments{system}, $arguments{module});

my $serve = systems::compiled($system, <<'CODE');
sub {
    my ($servers, $active, $requests) = @_;
    my ($after, $events) = (3600, 'r');
    my (@watchers, @timeouts, @to);
    my ($served, $bytes, $begun, $last) = (0, 0, 0, 0);
    my $random = 42;
    my $timeout = sub { die "an hour is over\n" };
    my $begin = systems::now();
    for my $i (0 .. $servers - 1) {
        (my $fh, $to[$i]) = main::connected();
        my $cb = $timeout;
        $timeouts[$i] = TIMER;
        $cb = sub {
            $bytes += sysread $fh, my $token, 1;
            my $cb = $timeout;
            REPLACE;
            $timeouts[$i] = TIMER;
            $begun = systems::now() if ++$served == $active;
            if ($served == $active + $requests) {
                $last = systems::now();
                FINISH;
            } elsif ($served < $active + $requests) {
                $random = ($random * 1103515245 + 12345) % 2147483648;
                syswrite $to[($random >> 8) % $servers], $token;
            }
        };
        push @watchers, IO;
    }
    my $made = systems::now();
    BEGIN_WAIT;
    syswrite $to[$_ * int($servers / $active)], 'x' for 0 .. $active - 1;
    WAIT;
    return ($made - $begin, $last - $begun, $bytes);
}
CODE

my @sizes = @arguments{qw(servers active requests)};
$serve->(10, 2, 20);
my ($create, $time, $bytes) = $serve->(@sizes);
systems::metric('create_us', 'us', 1e6 * $create / $sizes[0]);
systems::metric('request_us', 'us', 1e6 * $time / $sizes[2]);
systems::work('enough_bytes', $bytes >= $sizes[1] + $sizes[2]);
systems::ops('request', $sizes[2]);
