package AnyEvent::Impl::Spate;
use AnyEvent ();
BEGIN { AnyEvent::common_sense }
use Spate;

our $VERSION = $Spate::VERSION;

# What AnyEvent's users call most, without anything between. These callbacks get no arguments.
*AE::io         = \&Spate::_ae_io;
*AE::timer      = \&Spate::_ae_timer;
*AE::signal     = \&Spate::_ae_signal;
*AE::idle       = \&Spate::_ae_idle;
*AE::time       = \&Spate::time;
*AE::now        = \&Spate::now;
*AE::now_update = \&Spate::now_update;

sub time       { Spate::time }
sub now        { Spate::now }
sub now_update { Spate::now_update }

sub io {
    my (undef, %arg) = @_;
    Spate::_ae_io $arg{fh}, $arg{poll} ne 'r', $arg{cb};
}

sub timer {
    my (undef, %arg) = @_;
    Spate::_ae_timer $arg{after}, $arg{interval}, $arg{cb};
}

sub signal {
    my (undef, %arg) = @_;
    Spate::_ae_signal $arg{signal}, $arg{cb};
}

sub idle {
    my (undef, %arg) = @_;
    Spate::_ae_idle $arg{cb};
}

# Children are left to AnyEvent, which waits for all: its users may ask for pid 0, any.

sub _poll { Spate::run Spate::RUN_ONCE }

sub AnyEvent::CondVar::Base::_wait { Spate::_run_until_exists $_[0], '_ae_sent' }

1;

__END__

=head1 NAME

AnyEvent::Impl::Spate - AnyEvent on spate

=head1 SYNOPSIS

    use Spate;
    use AnyEvent;   # uses spate, as it is loaded

=head1 DESCRIPTION

AnyEvent finds this module by itself if L<Spate> is loaded before the first watcher is made, or if
C<PERL_ANYEVENT_MODEL=Spate> is in the environment. C<AE::io>, C<AE::timer>, C<AE::signal> and
C<AE::idle> are functions of the loop itself; their callbacks are called without arguments, many
under one C<eval>. A callback that dies is reported to C<$Spate::DIED>.

Handlers in C<%SIG> are called promptly, without a timer that looks for them.

Children are waited for by AnyEvent, with C<waitpid -1>. Do not mix C<AnyEvent-E<gt>child> with
C<Spate::child>: it may take the status that the other waits for.

=head1 SEE ALSO

L<AnyEvent>, L<Spate>.
