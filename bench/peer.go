// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// Peer is what a user would pick instead of sandpit.
type Peer interface {
	// Version names what is measured.
	Version() string
	// FirstCommand runs one command, which does nothing, in a fresh sandbox, and
	// gives how long it took from the request to the result, and the processor
	// time that it cost. What has to be there before, and what has to be cleaned
	// up afterwards, is not in the former.
	FirstCommand(ctx context.Context) (took, cpu time.Duration, err error)
	// Close ends all that the peer started.
	Close() error
}

// openPeer makes a peer ready. Its error says why it is not there.
type openPeer func(ctx context.Context, p peerParts) (Peer, error)

// peerParts is what peers are made of.
type peerParts struct {
	dir  string // theirs
	root string // the image's unpacked root, never written to
}

// peerNames is the list of peers: a new one is a line here.
var peerNames = map[string]openPeer{"runc": openRunc}
