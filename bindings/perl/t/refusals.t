# Rejected calls: bad arguments, other threads.
use strict;
use warnings;
use Test::More;
use Config;
use POSIX ();
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
{
    my $stat = Spate::stat '/', 0, $cb;
    my $long = '/x' x 2500;
    refuses { my $copy = $long; $stat->set($copy, 0) } qr/^Spate: File name too long/, 'a path too long, later';
    my @others = map { '/y' x 2500 } 1 .. 50;  # Reuse the freed memory.
    ok $stat->is_active, 'the watcher stays active';
    is $stat->path, '/', 'and keeps its path';
    my $io = Spate::io \*STDIN, 0, $cb;
    my $before = $io->fh;
    refuses { $io->set(\*STDERR, 0x100000) } qr/^Spate: /, 'unknown events, later';
    is $io->fh, $before, 'the watcher keeps its handle';
}
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

# A setter that refuses a value: the watcher is as before, and so is its next event. For each kind:
# how to make one, to cause an event and to read the values; then the errors and the calls.
my $file = "refusals.$$";
my $append = sub { open my $f, '>>', $file or die $!; print $f 'x'; close $f };
pipe my $reader, my $writer or die $!;
pipe my $wait, my $release or die $!;
my $pid = fork // die $!;
if ($pid == 0) {
    close $release;
    sysread $wait, my $byte, 1;
    POSIX::_exit(7);
}
close $wait;
my $calls;
my $count = sub { ++$calls };
my @setters = (
    [io => sub { Spate::io $reader, Spate::READ, $count }, sub { syswrite $writer, 'x' },
        sub { join ' ', fileno $_[0]->fh, $_[0]->events },
        [qr/^Spate: this file/, sub { $_[0]->set(undef, Spate::READ) }],
        [qr/^Spate: this file/, sub { $_[0]->set(-1, Spate::READ) }],
        [qr/^Spate: neither/, sub { $_[0]->set([], Spate::READ) }],
        [qr/^Spate: Invalid/, sub { $_[0]->set($writer, 0x100000) }],
        [qr/^Spate: Invalid/, sub { $_[0]->events(0x100000) }],
        [qr/^Spate: this file/, sub { $_[0]->fh(undef) }],
        [qr/^Spate: neither/, sub { $_[0]->fh([]) }]],
    [timer => sub { Spate::timer 0.001, 0, $count }, sub { }, sub { $_[0]->repeat },
        [qr/^Spate: a time/, sub { $_[0]->set('nan') }],
        [qr/^Spate: a time/, sub { $_[0]->set(1000, 'nan') }],
        [qr/^Spate: a time/, sub { $_[0]->again('nan') }]],
    [periodic => sub { Spate::periodic Spate::time() + 0.01, 0, 0, $count }, sub { }, sub { $_[0]->at },
        [qr/^Spate: a time/, sub { $_[0]->set('nan') }],
        [qr/^Spate: a time/, sub { $_[0]->set(0, 'nan') }],
        [qr/^Spate: Invalid/, sub { $_[0]->set(0, -1) }]],
    [signal => sub { Spate::signal 'USR2', $count }, sub { kill USR2 => $$ }, sub { $_[0]->signal },
        [qr/^Spate: there is no signal/, sub { $_[0]->set('NONE') }],
        map { my $bad = $_; [qr/^Spate: Invalid/, sub { $_[0]->set($bad) }] } qw(KILL STOP 0 -1 65 1000)],
    [child => sub { Spate::child $pid, 0, $count }, sub { syswrite $release, 'x' }, sub { $_[0]->pid },
        map { my $bad = $_; [qr/^Spate: Invalid/, sub { $_[0]->set($bad) }] } 0, -1, -$pid],
    [stat => sub { $append->(); Spate::stat $file, 0, $count }, $append, sub { join ' ', $_[0]->path, $_[0]->interval },
        [qr/^Spate: Invalid/, sub { $_[0]->set('', 1) }],
        [qr/^Spate: File name too long/, sub { $_[0]->set('x' x 5000, 1) }],
        [qr/^Wide character/, sub { $_[0]->set("\x{263a}", 1) }],
        [qr/^Spate: a time/, sub { $_[0]->set('/', 'nan') }]],
);
my @of_all = (
    [qr/^Spate: a callback/, sub { $_[0]->cb(undef) }],
    [qr/./, sub { $_[0]->cb([]) }],
);
alarm 60;
for (@setters) {
    my ($kind, $make, $cause, $values, @bad) = @$_;
    my $w = $make->();
    my $before = $values->($w);
    my $number = 0;
    for my $bad (@bad, @of_all) {
        refuses { $bad->[1]->($w) } $bad->[0], "$kind: bad value " . ++$number;
    }
    is $values->($w), $before, "$kind: the values are as before";
    ok $w->is_active, "$kind: it is active";
    $calls = 0;
    $cause->();
    Spate::run Spate::RUN_ONCE until $calls;
    is $calls, 1, "$kind: its event is reported";
}
alarm 0;
unlink $file;
is Spate::active_count, 0, 'nothing is left';

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
