// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"net"
	"os"
	"time"

	"sandpit.dev/sandbox"
)

// Driver makes sandboxes of one kind. It is safe for concurrent use.
type Driver interface {
	// Probe says what works on this host now, each "no" with its reason. It
	// changes nothing and may be called at any time.
	Probe(ctx context.Context) (Capabilities, error)

	// Create makes an instance and starts it: all or nothing. When it returns
	// without an error, Dial works; its agent may be on its way still, and answers
	// when it is there. One that cannot is an instance that goes down. After an error nothing of the instance
	// remains, also when ctx ended halfway. An id that exists, up or down, is
	// fault.Exists.
	Create(ctx context.Context, spec Spec) (Instance, error)

	// Open finds an instance that an earlier server made, up or down. One that
	// was up and whose processes are gone meanwhile is down: Wait tells why. An
	// instance whose disk is gone is fault.NotFound. Opening twice gives two
	// values for one instance.
	Open(ctx context.Context, h Handle) (Instance, error)

	// List returns the handles of all that this driver made and has not removed,
	// also of those that no record mentions, and of halves that a crash left:
	// Open, then Remove, on such a handle leaves nothing.
	List(ctx context.Context) ([]Handle, error)

	// Close lets go of the driver's own resources. Instances go on running.
	Close() error
}

// Instance is one sandbox, up or down. It is safe for concurrent use.
type Instance interface {
	// Handle is current: it changes with Start.
	Handle() Handle

	// Start brings an instance that is down up again on its disk, with the
	// limits and the image root of spec. All or nothing; one that is up already
	// is fault.State.
	Start(ctx context.Context, spec Spec) error

	// Dial connects to the agent inside. On an instance that is down it is
	// fault.State. Each call gives a new connection.
	Dial(ctx context.Context) (net.Conn, error)

	// Wait blocks until the instance is down, and says why; at once when it is
	// down already. Any number of callers may wait. The error is ctx's.
	Wait(ctx context.Context) (Exit, error)

	// Stop takes the instance down: it asks the agent's processes to end, and
	// kills what is left after grace; zero kills at once. All of its host
	// resources but the disk are free when it returns. Twice is fine.
	Stop(ctx context.Context, grace time.Duration) error

	// Remove stops it at once if it is up, and deletes its disk. Twice is fine.
	Remove(ctx context.Context) error
}

// Expecter is what instances are whose next call can be made ready for.
type Expecter interface {
	// Expect does what the next Dial would, if nobody has since the last one. It is quick,
	// and what it makes is let go of when no call comes within a few seconds. An instance
	// that is down, or paused, has none to come.
	Expect()
}

// LogKeeper is what instances are whose logs of processes the host can read, up or down.
type LogKeeper interface {
	// Logs opens the directory in which the agent keeps them. The caller closes it.
	// What is in it comes from inside the sandbox.
	Logs() (*os.File, error)
}

// Spec is what a driver needs to know to make an instance.
type Spec struct {
	ID       sandbox.ID
	Image    Image
	Hostname string // at most 63 characters; seen inside
	Limits   sandbox.Limits
	From     sandbox.ID      // of Create: the snapshot that its disk is a copy of; zero: its disk is empty
	Mounts   []sandbox.Mount // volumes; a driver that is no [Volumer] refuses them
}

// Image is what a sandbox's first files are. A driver takes of it what it needs.
type Image struct {
	Name   string // the catalogue's
	Digest string // "sha256:" and 64 hex digits; it names the image for ever
	Root   string // host path of its unpacked root, which is shared and never written
}

// Handle finds an instance again.
type Handle struct {
	ID   sandbox.ID
	Data []byte // the driver's own; may be empty, then the driver looks for ID
}

// Exit says how an instance came to be down.
type Exit struct {
	Cause  sandbox.Cause // stopped (Stop or Remove was called), oom, killed, host
	Detail string        // the evidence, for people
}

// Tracker is what instances have whose host can tell which files a command
// changed, at a cost that does not grow with the tree.
type Tracker interface {
	// Track opens a window on the directory dir (absolute, inside). Several
	// windows at once are fine; each sees every change made while it is open.
	Track(ctx context.Context, dir string) (Window, error)
}

// Window collects changes until Close.
type Window interface {
	// Close ends the window. The changes hold the net effect of all that was
	// done before the call. Calling it twice gives the same again.
	Close(ctx context.Context) (sandbox.Changes, error)
}
