# POE on the loop; and POE's own tests for loops, if they are installed.
use strict;
use warnings;
use Test::More;
use File::Temp;

eval { require POE::Kernel; 1 } or plan skip_all => 'POE is not installed';

my $program = <<'CODE';
use POE::Kernel {loop => 'Spate'}; use POE; pipe my $r, my $w;
POE::Session->create(inline_states => {
    _start => sub { $_[KERNEL]->select_read($r, 'readable'); $_[KERNEL]->delay(tick => 0.01); $_[KERNEL]->delay(late => 60);
        $_[KERNEL]->sig(USR1 => 'signal') },
    tick => sub { print "tick\n"; syswrite $w, 'x' },
    readable => sub { sysread $r, my $byte, 1; print "read $byte\n"; $_[KERNEL]->select_read($r); kill USR1 => $$ },
    signal => sub { print "signal\n"; $_[KERNEL]->sig('USR1'); $_[KERNEL]->delay('late'); $_[KERNEL]->sig_handled },
});
POE::Kernel->run; print "end\n";
CODE
my $file = File::Temp->new;
print $file $program;
close $file;
is qx{$^X -Mblib $file 2>/dev/null}, "tick\nread x\nsignal\nend\n", 'times, descriptors, signals';

SKIP: {
    my ($generator) = grep { -e } map { "$_/poe-gen-tests" } split /:/, $ENV{PATH};
    skip 'POE::Test::Loops is not installed', 1 unless $generator;
    my $directory = File::Temp->newdir;
    system $^X, $generator, "--dirbase=$directory", '--loop=POE::Loop::Spate';
    my $output = qx{prove -b -j 2 -r $directory 2>&1};
    is $?, 0, q{POE's own} or diag $output;
    note $output;
}
done_testing;
