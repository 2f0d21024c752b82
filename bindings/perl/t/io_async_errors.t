# Cases that IO::Async's own tests leave out.
use strict;
use warnings;
use Test::More;

eval { require IO::Async::Loop; require IO::Async::Loop::Spate } or plan skip_all => 'IO::Async is not installed';
my $loop = IO::Async::Loop::Spate->new;

$loop->watch_time(after => 0, code => sub { die "x\n" });
ok !eval { $loop->loop_once(5) for 1 .. 3; 1 };
is $@, "x\n", 'what dies in a callback ends the loop';

my @order;
$loop->watch_time(after => $_ / 1000, code => do { my $i = $_; sub { push @order, $i } }) for 3, 1, 2;
my $never = $loop->watch_time(at => time + 1, code => sub { push @order, 'never' });
$loop->unwatch_time($never);
$loop->loop_once(5) while @order < 3;
is_deeply \@order, [1, 2, 3];
ok !eval { $loop->watch_time(after => 1); 1 }, 'a timer without code is refused';
ok !eval { $loop->watch_time(code => sub { }); 1 }, 'and one without a time';
ok !eval { $loop->watch_io(on_read_ready => sub { }); 1 }, 'and an io without a handle';
done_testing;
