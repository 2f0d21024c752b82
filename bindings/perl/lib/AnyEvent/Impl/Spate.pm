package AnyEvent::Impl::Spate;
use AnyEvent ();
BEGIN { AnyEvent::common_sense }
use Spate;

our $VERSION = $Spate::VERSION;

# AnyEvent's most called functions, bound directly. These callbacks get no arguments.
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

# AnyEvent itself waits for children, since its users may watch pid 0, which means any child.

sub _poll { Spate::run Spate::RUN_ONCE }

sub AnyEvent::CondVar::Base::_wait { Spate::_run_until_exists $_[0], '_ae_sent' }

1;

__END__

=head1 NAME

AnyEvent::Impl::Spate - AnyEvent on spate

=head1 SYNOPSIS

    use Spate;
    use AnyEvent;   # uses spate, since it is loaded

=head1 DESCRIPTION

AnyEvent uses this module if L<Spate> is loaded before the first watcher is created, or if
C<PERL_ANYEVENT_MODEL=Spate> is in the environment. C<AE::io>, C<AE::timer>, C<AE::signal> and
C<AE::idle> are functions of the loop itself. Their callbacks are called without arguments, many
in one C<eval>. If a callback dies, C<$Spate::DIED> is called.

Handlers in C<%SIG> are called at once, without a timer that polls for signals.

AnyEvent waits for children, with C<waitpid -1>. Do not use both C<AnyEvent-E<gt>child> and
C<Spate::child>: the former may take a status for which the latter waits.

=head1 SEE ALSO

L<AnyEvent>, L<Spate>.
