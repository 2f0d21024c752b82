# Test suites of other modules, where the user has them: SPATE_ANYEVENT_T, the directory t of AnyEvent.
use strict;
use warnings;
use Test::More;

my $anyevent = $ENV{SPATE_ANYEVENT_T};
plan skip_all => 'SPATE_ANYEVENT_T names no directory' unless $anyevent;

my @files = map { glob "$anyevent/$_*.t" } qw(01 02 03 04 05 07 09 handle/);
for my $way ([], [PERL_ANYEVENT_STRICT => 1], [PERL_ANYEVENT_DEBUG_WRAP => 2]) {
    local %ENV = (%ENV, PERL_ANYEVENT_MODEL => 'Spate', @$way);
    my $output = qx{prove -b @files 2>&1};
    is $?, 0, "AnyEvent's own, @$way" or diag $output;
    note $output;
}
done_testing;
