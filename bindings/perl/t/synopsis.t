# Runs the synopsis.
use strict;
use warnings;
use Test::More;

require Spate;
open my $file, '<', $INC{'Spate.pm'} or die;
my $text = do { local $/; <$file> };
my ($code) = $text =~ /^=head1 SYNOPSIS\n(.*?)^=head1/ms;
my $path = "/tmp/spate-perl-synopsis-$$.pl";
open my $program, '>', $path or die;
print $program "use strict; use warnings;\n$code";
close $program;
my $output = qx{$^X -Mblib $path 2>&1};
unlink $path;
is $?, 0, 'it ends well';
like $output, qr/read line 1\n/;
like $output, qr/read line 2\n/;
like $output, qr/\d+ ended with 3\n/;
done_testing;
