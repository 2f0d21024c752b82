# The child of a fork may use the loop; so may the parent.
use strict;
use warnings;
use Test::More;
use POSIX ();
use Spate;

# Runs the code in a child. Returns its result.
sub in_child(&) {
    my ($code) = @_;
    pipe my $reader, my $writer;
    my $pid = fork // die;
    if ($pid == 0) {
        syswrite $writer, join ' ', eval { $code->() }, $@ || ();
        POSIX::_exit(0);
    }
    close $writer;
    my $answer = do { local $/; <$reader> };
    waitpid $pid, 0;
    return $answer;
}

pipe my $reader, my $writer;
my %calls = map { $_ => 0 } qw(io timer fork signal async);
my $io = Spate::io $reader, Spate::READ, sub { sysread $reader, my $byte, 1; ++$calls{io} };
my $timer = Spate::timer 0.001, 0.001, sub { ++$calls{timer} };
my $fork = Spate::fork sub { ++$calls{fork} };
my $signal = Spate::signal USR1 => sub { ++$calls{signal} };
my $async = Spate::async sub { ++$calls{async} };
Spate::run Spate::RUN_NOWAIT;

my $seen = in_child {
    my $done = Spate::timer 5, 0, sub { die };
    syswrite $writer, 'x';
    kill USR1 => $$;
    $async->send;
    Spate::run Spate::RUN_ONCE until $calls{io} && $calls{timer} && $calls{signal} && $calls{async};
    return $calls{fork};
};
is $seen, 1, 'all watchers work in the child, and its hook is called';

is in_child { undef $io; undef $timer; undef $signal; undef $async; 'gone' }, 'gone', 'they may be forgotten there';

$calls{timer} = 0;
syswrite $writer, 'x';
Spate::run Spate::RUN_ONCE until $calls{io} && $calls{timer};
is $calls{fork}, 0, 'the parent goes on, and has noticed nothing';

is in_child {
    my $calls = 0;
    $signal->set('USR2');
    my $tick = Spate::timer 5, 0, sub { die };
    $signal->cb(sub { ++$calls });
    kill USR2 => $$;
    Spate::run Spate::RUN_ONCE until $calls;
    return $calls;
}, 1, 'a watcher may be set anew before anything else';

my ($inner, $outer);
my $forks = Spate::timer 0, 0, sub {
    $inner = in_child {
        my $calls = 0;
        my $t = Spate::timer 0.001, 0, sub { ++$calls; Spate::break };
        Spate::run;
        return "$calls at " . Spate::depth;
    };
    $outer = 1;
};
Spate::run Spate::RUN_ONCE until $outer;
is $inner, '1 at 1', 'also in a callback';

my $pid = fork // die;
POSIX::_exit(3) if $pid == 0;
my $status;
my $child = Spate::child $pid, 0, sub { $status = $_[0]->rstatus >> 8 };
is in_child { $child->is_active; Spate::run Spate::RUN_NOWAIT; $child->is_active }, 0, 'whose children are not its own';
Spate::run Spate::RUN_ONCE until defined $status;
is $status, 3;

my $output = qx{true};
is $?, 0, 'system works';
done_testing;
