package Spate;
use 5.032;
use strict;
use warnings;

our $VERSION;
BEGIN { $VERSION = '0.1.0' }

# AnyEvent looks here for a loop that is loaded, before its own list.
BEGIN { push @AnyEvent::REGISTRY, ['Spate' => 'AnyEvent::Impl::Spate'] }

require XSLoader;
XSLoader::load('Spate', $VERSION);

our $DIED = sub { warn "Spate: error in callback (ignoring): $@" };

{ no strict "refs"; @{"Spate::${_}::ISA"} = 'Spate::Watcher'
    for qw(IO Timer Periodic Signal Child Stat Idle Prepare Check Fork Async); }

1;
