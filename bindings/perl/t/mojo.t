# Mojolicious's reactor.
use strict;
use warnings;
use Test::More;

eval { require Mojo::Reactor::Poll } or plan skip_all => 'Mojolicious is not installed';
$ENV{MOJO_REACTOR} = 'Mojo::Reactor::Spate';
require Mojo::Reactor::Spate;

my $reactor = Mojo::Reactor::Spate->new;
isa_ok $reactor, 'Mojo::Reactor::Spate';
is ref(Mojo::Reactor::Spate->new), 'Mojo::Reactor::Poll', 'there is one loop';

pipe my $reader, my $writer;
$_->autoflush for $writer;

subtest 'descriptors' => sub {
    my @seen;
    $reactor->io($writer => sub { push @seen, $_[1] });
    $reactor->one_tick;
    is_deeply \@seen, [1], 'writable';
    $reactor->watch($writer, 0, 0);
    $reactor->io($reader => sub { my ($r, $writable) = @_; push @seen, $writable; sysread $reader, my $byte, 1; $r->stop });
    $reactor->watch($reader, 1, 0);
    syswrite $writer, 'x';
    @seen = ();
    $reactor->start;
    is_deeply \@seen, [0], 'readable, and what is paused is not called';
    ok $reactor->remove($reader);
    ok $reactor->remove($writer);
    ok !eval { $reactor->watch($reader, 1, 0); 1 }, 'what was removed cannot be watched';
};

subtest 'timers' => sub {
    my ($once, $often, $never) = (0, 0, 0);
    $reactor->timer(0 => sub { ++$once });
    my $id = $reactor->timer(0.001 => sub { ++$never });
    $reactor->remove($id);
    my $again = $reactor->timer(1000 => sub { ++$once });
    $reactor->again($again, 0.001);
    my $recurring = $reactor->recurring(0 => sub { my ($r) = @_; $r->stop if ++$often >= 3 && $once == 2 });
    $reactor->start;
    is $once, 2;
    is $never, 0;
    cmp_ok $often, '>=', 3;
    ok $reactor->remove($recurring);
    ok !eval { $reactor->again($again); 1 }, 'an expired timer is not active';
};

subtest 'errors are told' => sub {
    my $error;
    $reactor->once(error => sub { $error = $_[1] });
    $reactor->timer(0 => sub { die "x\n" });
    $reactor->one_tick until defined $error;
    is $error, "Timer failed: x\n";
};

subtest 'ticks' => sub {
    my @order;
    $reactor->next_tick(sub { push @order, 1; ok $reactor->is_running });
    $reactor->next_tick(sub { push @order, 2 });
    $reactor->start;
    is_deeply \@order, [1, 2];
    ok !$reactor->is_running;
};

undef $reactor;
require Mojo::IOLoop;
is ref(Mojo::IOLoop->singleton->reactor), 'Mojo::Reactor::Spate', 'it is the one of the loop';
my $got;
my $port = Mojo::IOLoop->acceptor(Mojo::IOLoop->server({address => '127.0.0.1'}, sub {
    my ($loop, $stream) = @_;
    $stream->on(read => sub { my ($s, $bytes) = @_; $s->write(uc $bytes) });
}))->port;
Mojo::IOLoop->client({port => $port}, sub {
    my ($loop, $error, $stream) = @_;
    $stream->on(read => sub { $got = $_[1]; $loop->stop });
    $stream->write('hello');
});
Mojo::IOLoop->start;
is $got, 'HELLO', 'a server and a client';
done_testing;
