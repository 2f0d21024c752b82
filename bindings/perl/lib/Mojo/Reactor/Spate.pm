package Mojo::Reactor::Spate;
use Mojo::Base 'Mojo::Reactor::Poll';

use Carp         qw(croak);
use Scalar::Util qw(weaken);
use Spate;

our $VERSION = $Spate::VERSION;

# There is one loop, so a second reactor must use another class.
my $taken;

sub new     { $taken++ ? Mojo::Reactor::Poll->new : shift->SUPER::new }
sub DESTROY { undef $taken }

sub start { shift->_run(0) }
sub stop  { Spate::break Spate::BREAK_ALL }

sub one_tick { shift->_run(Spate::RUN_ONCE) }

sub timer     { shift->_start_timer(0, @_) }
sub recurring { shift->_start_timer(1, @_) }

sub again {
    my ($self, $id, $after) = @_;
    my $timer = $self->{timers}{$id} or croak 'Timer not active';
    $timer->{after} = $after if defined $after;
    Spate::now_update;
    $timer->{watcher}->set($timer->{after}, $timer->{recurring} ? $timer->{after} : 0);
}

sub watch {
    my ($self, $handle, $read, $write) = @_;
    my $fd = fileno $handle;
    my $io = $self->{io}{$fd} or croak 'I/O watcher not active';
    my $events = ($read ? Spate::READ : 0) | ($write ? Spate::WRITE : 0);
    if ($io->{watcher}) {
        $io->{watcher}->events($events);
    } elsif ($events) {
        $io->{watcher} = Spate::io $fd, $events, $self->_io_callback($fd);
    }
    return $self;
}

sub _run {
    my ($self, $flags) = @_;
    local $self->{running} = 1;
    Spate::run $flags;
}

sub _io_callback {
    my ($self, $fd) = @_;
    weaken $self;
    return sub {
        my (undef, $events) = @_;
        for my $writable (0, 1) {
            next unless $events & ($writable ? Spate::WRITE : Spate::READ);
            my $io = $self->{io}{$fd} or return;
            $self->_try('I/O watcher', $io->{cb}, $writable);
        }
    };
}

sub _start_timer {
    my ($self, $recurring, $after, $cb) = @_;
    my $id = $self->_id;
    weaken $self;
    Spate::now_update if $after > 0;
    $after = 0.0001 if $recurring && $after <= 0;    # 0 is no repeat.
    my $watcher = Spate::timer $after, $recurring ? $after : 0, sub {
        delete $self->{timers}{$id} unless $recurring;
        $self->_try('Timer', $cb);
    };
    $self->{timers}{$id} = {watcher => $watcher, after => $after, recurring => $recurring};
    return $id;
}

1;

__END__

=head1 NAME

Mojo::Reactor::Spate - Mojolicious on spate

=head1 SYNOPSIS

    $ENV{MOJO_REACTOR} = 'Mojo::Reactor::Spate';    # before Mojo::IOLoop is loaded
    use Mojo::IOLoop;

=head1 DESCRIPTION

A L<Mojo::Reactor>. A process can have one; a second reactor is a L<Mojo::Reactor::Poll>.

=head1 SEE ALSO

L<Mojolicious>, L<Spate>.
