package IO::Async::Loop::Spate;
use strict;
use warnings;
use base qw(IO::Async::Loop);
use Carp;
use Scalar::Util qw(weaken);
use Spate;

our $VERSION = $Spate::VERSION;
use constant API_VERSION    => '0.49';
use constant _CAN_ON_HANGUP => 0;

sub new {
    my ($class, %args) = @_;
    my $self = $class->__new(%args);
    $self->{spate_io} = {};
    return $self;
}

# In IO::Async an exception of a callback ends the loop.
sub loop_once {
    my ($self, $timeout) = @_;
    $self->_adjust_timeout(\$timeout);
    my ($dead, $error);
    local $Spate::DIED = sub { ($dead, $error) = (1, $@); Spate::break };
    Spate::now_update;
    my $limit = defined $timeout && $timeout > 0 ? Spate::timer($timeout, 0, sub { }) : undef;
    my $nothing = Spate::async(sub { });    # Without a watcher there is no wait.
    $self->pre_wait;
    Spate::run(defined $timeout && $timeout <= 0 ? Spate::RUN_NOWAIT : Spate::RUN_ONCE);
    $self->post_wait;
    die $error if $dead;
    return $self->_manage_queues;
}

sub is_running { return $_[0]{running} }

sub watch_io {
    my ($self, %params) = @_;
    my $handle = $params{handle} or croak 'Need a handle';
    my $watched = $self->{spate_io}{$handle->fileno} //= {};
    for my $ready (qw(on_read_ready on_write_ready)) {
        next unless $params{$ready};
        $watched->{$ready} = Spate::io $handle,
            $ready eq 'on_read_ready' ? Spate::READ : Spate::WRITE, $params{$ready};
    }
}

sub unwatch_io {
    my ($self, %params) = @_;
    my $fd = $params{handle}->fileno;
    my $watched = $self->{spate_io}{$fd} or return;
    delete $watched->{$_} for grep { $params{$_} } qw(on_read_ready on_write_ready);
    delete $self->{spate_io}{$fd} unless %$watched;
}

sub watch_time {
    my ($self, %params) = @_;
    my $code = $params{code} or croak 'Expected code';
    my $after = exists $params{at} ? $params{at} - ($params{now} // Spate::time)
              : exists $params{after} ? $params{after} : croak q{Expected one of 'at' or 'after'};
    Spate::now_update;
    my $id = ++$self->{spate_last_time};
    weaken(my $loop = $self);
    $self->{spate_timers}{$id} = Spate::timer $after, 0, sub {
        delete $loop->{spate_timers}{$id};
        $code->();
    };
    return $id;
}

sub unwatch_time {
    my ($self, $id) = @_;
    delete $self->{spate_timers}{$id};
}

1;

__END__

=head1 NAME

IO::Async::Loop::Spate - IO::Async on spate

=head1 SYNOPSIS

    use IO::Async::Loop::Spate;
    my $loop = IO::Async::Loop::Spate->new;

or C<IO_ASYNC_LOOP=Spate> in the environment.

=head1 DESCRIPTION

An L<IO::Async::Loop>. Descriptors and times are watched by L<Spate>; signals and children as
IO::Async does by itself, with handlers in C<%SIG>.

=head1 SEE ALSO

L<IO::Async>, L<Spate>.
