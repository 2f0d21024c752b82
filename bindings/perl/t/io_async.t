# IO::Async's own tests for loops.
use strict;
use warnings;
use Test::More;

for my $module (qw(IO::Async::LoopTests IO::Async::Loop::Spate)) {
    eval "require $module; 1" or plan skip_all => "$module is not there: " . $@ =~ s/ at .*//sr;
}
IO::Async::LoopTests::run_tests('IO::Async::Loop::Spate', qw(io timer signal idle process control metrics));
