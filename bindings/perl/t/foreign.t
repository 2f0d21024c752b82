# Suites of others, from where a user has them: SPATE_ANYEVENT_T, the t/ of AnyEvent.
use strict;
use warnings;
use Test::More;

sub proves {
    my ($what, @files) = @_;
    my $output = qx{prove -b @files 2>&1};
    ok $? == 0, $what or diag $output;
    note $output;
}

my $anyevent = $ENV{SPATE_ANYEVENT_T};
plan skip_all => 'SPATE_ANYEVENT_T names no directory' unless $anyevent;
$ENV{PERL_ANYEVENT_MODEL} = 'Spate';
my @files = map { glob "$anyevent/$_*.t" } qw(01 02 03 04 05 07 09 handle/);
proves('as it is', @files);
{ local $ENV{PERL_ANYEVENT_STRICT} = 1; proves('with checked arguments', @files) }
{ local $ENV{PERL_ANYEVENT_DEBUG_WRAP} = 2; proves('with wrapped watchers', @files) }
done_testing;
