# What is refused: bad arguments, other threads.
use strict;
use warnings;
use Test::More;
use Config;
use Spate;

sub refuses(&$$) {
    my ($code, $pattern, $what) = @_;
    my $result = eval { $code->(); 1 };
    ok !$result && $@ =~ $pattern, $what or diag $result ? 'it was taken' : $@;
}

my $cb = sub { };
my $timer = Spate::timer_ns 1, 0, $cb;

refuses { Spate::timer 1, 0, undef } qr/^Spate: a callback/, 'no callback';
refuses { Spate::timer 1, 0, [] } qr/subroutine/, 'an array as callback';
refuses { Spate::timer 'nan', 0, $cb } qr/^Spate: a time/, 'a time that is none';
refuses { Spate::io undef, Spate::READ, $cb } qr/^Spate: this file/, 'no descriptor';
refuses { Spate::io -1, Spate::READ, $cb } qr/^Spate: this file/, 'a negative one';
refuses { Spate::io [], Spate::READ, $cb } qr/^Spate: neither/, 'a reference that is no handle';
refuses { open my $f, '<', \'text'; Spate::io $f, Spate::READ, $cb } qr/^Spate: this file/, 'a file in memory';
refuses { open my $f, '<', '/'; close $f; Spate::io $f, Spate::READ, $cb } qr/^Spate: this file/, 'a closed file';
refuses { Spate::io 0, 0x100000, $cb } qr/^Spate: /, 'unknown events';
refuses { Spate::signal 'NONE', $cb } qr/^Spate: there is no signal NONE/, 'a signal that is none';
refuses { Spate::signal 'KILL', $cb } qr/^Spate: Invalid/, 'a signal that cannot be caught';
refuses { Spate::signal 1000, $cb } qr/^Spate: Invalid/, 'a number too high';
refuses { Spate::child 0, 0, $cb } qr/^Spate: Invalid/, 'any child';
refuses { Spate::child $$, 0, $cb } qr/^Spate: No child/, 'no child';
refuses { Spate::stat 'x' x 5000, 0, $cb } qr/^Spate: File name too long/, 'a path too long';
refuses { Spate::periodic 0, -1, 0, $cb } qr/^Spate: Invalid/, 'a negative interval';
refuses { Spate::IO::fh($timer) } qr/^Spate: this is no Spate::IO/, 'a method of another kind';
refuses { Spate::Watcher::start('x') } qr/^Spate: this is no watcher/, 'a method of no watcher';
refuses { Spate::Watcher::start(bless [], 'Other') } qr/^Spate: this is no watcher/, 'or of another object';
refuses { Spate::Watcher::start(bless [], 'Spate::Timer') } qr/^Spate: this is no watcher/, 'or of a forged one';
refuses { Spate::Watcher::start(bless \my $x, 'Spate::Timer') } qr/^Spate: this watcher was destroyed|no watcher/, 'or of an empty one';
refuses { $$timer = 5 } qr/read-only/, 'another address';
refuses { $timer->cb('nothing at all') } qr/./, 'a callback by the name of none';

my $gone = Spate::timer 1, 0, $cb;
$gone->DESTROY;
refuses { $gone->start } qr/^Spate: this watcher was destroyed/, 'one that was destroyed by hand';
undef $gone;

is Spate::active_count, 0, 'nothing was started';

{
    package Callable;
    use overload '&{}' => sub { my ($self) = @_; sub { $self->{calls}++ } };
}
my $callable = bless {calls => 0}, 'Callable';
my @callables = (Spate::timer(0, 0, $callable), Spate::timer(0, 0, bless sub { ++$callable->{calls} }, 'Blessed'));
Spate::run;
is $callable->{calls}, 2, 'objects that can be called are callbacks';

SKIP: {
    skip 'a perl without threads', 3 unless $Config{useithreads} && eval { require threads };
    my $active = Spate::timer 1000, 0, $cb;
    my @seen = threads->create({context => 'list'}, sub {
        return (eval { Spate::timer(0, 0, $cb); 'made' } // $@, eval { Spate::run(); 'ran' } // $@, ref $active);
    })->join;
    like $seen[0], qr/^Spate: only the thread/;
    like $seen[1], qr/^Spate: only the thread/;
    ok $active->is_active && $seen[2] ne 'Spate::Timer', 'its watchers are no watchers there, and stay here';
}

done_testing;
