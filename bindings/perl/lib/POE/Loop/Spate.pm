package POE::Loop::Spate;
use strict;
use warnings;
use POE::Loop::PerlSignals;
use Spate;

our $VERSION = $Spate::VERSION;

# A loop of POE defines methods of its kernel.
package POE::Kernel;
use strict;
use warnings;

my (%watchers, $timer);    # By mode and descriptor; the time of the next event.
my %events = (MODE_RD, Spate::READ, MODE_WR, Spate::WRITE, MODE_EX, Spate::URGENT);

sub loop_initialize { %watchers = () }

sub loop_finalize {
    my ($self) = @_;
    undef $timer;
    %watchers = ();
    $self->loop_ignore_all_signals;
}

sub loop_attach_uidestroy { }

# ---- the timer of the next event

sub loop_resume_time_watcher { $_[0]->loop_reset_time_watcher($_[1]) }

sub loop_reset_time_watcher {
    my ($self, $next) = @_;
    my $after = $next - monotime();
    Spate::now_update;
    $timer //= Spate::timer_ns 0, 0, sub { };
    $timer->set($after > 0 ? $after : 0);
    $timer->start;
}

sub loop_pause_time_watcher { undef $timer }

# ---- descriptors: one that is ready is paused until its event was dispatched

sub loop_watch_filehandle {
    my ($self, $handle, $mode) = @_;
    my $fd = fileno $handle;
    $watchers{$mode}{$fd} = Spate::io $handle, $events{$mode}, sub {
        $self->_data_handle_enqueue_ready($mode, $fd);
    };
}

sub loop_ignore_filehandle {
    my ($self, $handle, $mode) = @_;
    delete $watchers{$mode}{fileno $handle};
}

sub loop_pause_filehandle {
    my ($self, $handle, $mode) = @_;
    my $watcher = $watchers{$mode}{fileno $handle} or return;
    $watcher->stop;
}

sub loop_resume_filehandle {
    my ($self, $handle, $mode) = @_;
    my $watcher = $watchers{$mode}{fileno $handle} or return;
    $watcher->start;
}

# ---- the loop

# An exception thrown in POE must reach the caller of run.
sub loop_do_timeslice {
    my ($self) = @_;
    my ($dead, $error);
    local $Spate::DIED = sub { ($dead, $error) = (1, $@) };
    $self->_test_if_kernel_is_idle;
    Spate::run Spate::RUN_ONCE;
    die $error if $dead;
    $self->_data_ev_dispatch_due;
}

sub loop_run {
    my ($self) = @_;
    $self->loop_do_timeslice while $self->_data_ses_count;
}

sub loop_halt { }

1;

__END__

=head1 NAME

POE::Loop::Spate - POE on spate

=head1 SYNOPSIS

    use POE::Kernel {loop => 'Spate'};
    use POE;

or C<POE_EVENT_LOOP=POE::Loop::Spate> in the environment.

=head1 DESCRIPTION

A loop for L<POE::Kernel>. L<Spate> watches the descriptors and the time of the next event; signals are
handled as in POE's own loops.

=head1 SEE ALSO

L<POE>, L<Spate>.
