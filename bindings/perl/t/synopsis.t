# Runs the synopsis.
use strict;
use warnings;
use Test::More;

require Spate;
open my $file, '<', $INC{'Spate.pm'} or die;
my $text = do { local $/; <$file> };
my ($code) = $text =~ /^=head1 SYNOPSIS\n(.*?)^=head1/ms;
my $path = "/tmp/spate-perl-synopsis-$$.pl";

# Returns the output of the program, which runs for that time and must end well.
sub run_for {
    my ($seconds) = @_;
    open my $program, '>', $path or die;
    print $program "use strict; use warnings;\n", $code =~ s/undef, 0, 0\.2/undef, 0, $seconds/r;
    close $program;
    my $output = qx{$^X -Mblib $path 2>&1};
    is $?, 0, 'it ends well';
    unlink $path;
    return $output;
}

my @lines = (qr/read line 1\n/, qr/read line 2\n/, qr/\d+ ended with 3\n/);
my $output;
for my $seconds (0.2, 2, 20) {    # A busy machine needs longer.
    $output = run_for($seconds);
    last if !grep { $output !~ $_ } @lines;
}
like $output, $_ for @lines;
done_testing;
