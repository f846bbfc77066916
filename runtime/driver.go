// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"sandpit.dev/sandbox"
)

// Driver makes sandboxes of one kind. It is safe for concurrent use.
type Driver interface {
	// Probe returns what works on this host now, each "no" with its reason. It changes nothing
	// and may be called at any time.
	Probe(ctx context.Context) (Capabilities, error)

	// Create makes an instance and starts it: all or nothing. When it returns without an error,
	// Dial works; the agent may still be starting, and answers when it is ready. If it cannot
	// start, the instance goes down. After an error nothing of the instance remains, also when
	// ctx ended halfway. An id that exists, up or down, is fault.Exists.
	Create(ctx context.Context, spec Spec) (Instance, error)

	// Open finds an instance that an earlier server made, up or down. One that was up and whose
	// processes have ended since is down: Wait returns why. An instance whose disk is gone is
	// fault.NotFound. Opening twice returns two values for one instance.
	Open(ctx context.Context, h Handle) (Instance, error)

	// List returns the handles of all instances that this driver made and has not removed,
	// including those without a record and incomplete ones that a crash left: Open, then Remove,
	// on such a handle leaves nothing.
	List(ctx context.Context) ([]Handle, error)

	// Close releases the driver's own resources. Instances keep running.
	Close() error
}

// Instance is one sandbox, up or down. It is safe for concurrent use.
type Instance interface {
	// Handle returns the current handle, which changes with Start.
	Handle() Handle

	// Start brings an instance that is down up again on its disk, with the limits and the image
	// root of spec. All or nothing; an instance that is up is fault.State.
	Start(ctx context.Context, spec Spec) error

	// Dial opens a new connection to the agent inside. On an instance that is down it is
	// fault.State.
	Dial(ctx context.Context) (net.Conn, error)

	// Wait blocks until the instance is down, and returns why; at once if it is down already. Any
	// number of callers may wait. The error is ctx's.
	Wait(ctx context.Context) (Exit, error)

	// Stop takes the instance down: it asks the agent's processes to end, and kills what is left
	// after grace; zero kills at once. All of its host resources but the disk are free when it
	// returns. Calling it twice is fine.
	Stop(ctx context.Context, grace time.Duration) error

	// Remove stops the instance at once if it is up, and deletes its disk. Calling it twice is
	// fine.
	Remove(ctx context.Context) error
}

// Expecter is implemented by instances that can prepare their next call.
type Expecter interface {
	// Expect prepares the next Dial, unless that was done since the last one. It is quick, and
	// what it prepared is released when no Dial follows within a few seconds. It does nothing on
	// an instance that is down or paused.
	Expect()
}

// Noter is implemented by instances of which a start may have something to say.
type Noter interface {
	// Note returns what the last Start did beside starting it, or left undone, in one sentence; "": nothing. It is of
	// interest to who has the sandbox.
	Note() string
}

// LogKeeper is implemented by instances whose process logs the host can read, up or down.
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
	Project  string          // whose it is, for drivers whose instances people see elsewhere
	Account  *Account        // for an [Accounter]: what its user is called from the first call on; nil: as always
	Renames  bool            // for an [Accounter], of Create: its user may be called otherwise once it runs, by whom it is given to
}

// Account is an account that a driver has the agent make as it starts.
type Account struct {
	sandbox.Account
	Again bool // the disk had it before: nothing that the disk says against it is heard
}

// Accounter is implemented by drivers that heed [Spec].Account. Their agents make it while the caller goes on,
// and whatever could see that it is not there waits for it.
type Accounter interface {
	// Suits reports whether an account can surely be made on a new, empty disk over an image. False is no refusal.
	Suits(img Image, a sandbox.Account) bool
}

// Image is a sandbox's initial files. A driver uses the fields that it needs.
type Image struct {
	Name   string // the catalogue's
	Digest string // "sha256:" and 64 hex digits; it names the image for ever
	Root   string // host path of its unpacked root, which is shared and never written
}

// Imager is implemented by drivers that give images to somebody else, who keeps them.
type Imager interface {
	// RemoveImage removes what was kept of the image with this digest. Nothing kept is no error; what
	// is in use is fault.Conflict.
	RemoveImage(ctx context.Context, digest string) error
}

// ImageSource is implemented by drivers where images are that the server does not have.
type ImageSource interface {
	// SaveImage returns an image as an archive of docker save's form, which comes from elsewhere and is
	// not to be trusted. One that is not there is fetched from its registry first. An unknown one is
	// fault.NotFound, a registry that does not give it fault.Unavailable or fault.Denied, and what is no reference
	// fault.Invalid. tell, which may be nil, is told how far a fetch is, by one goroutine at a time. The caller closes it.
	SaveImage(ctx context.Context, reference string, tell func(ImageProgress)) (io.ReadCloser, error)
}

// ImageProgress is how far an image is that is fetched from its registry.
type ImageProgress struct {
	Layers, Ready int     // how many it has, as far as is known, and how many of them are there
	Done, Total   int64   // bytes of those that were begun, as transported
	Part          float64 // of the whole, 0 to 1; it may go back while layers become known
	Each          []LayerProgress
}

// LayerProgress is how far a layer is.
type LayerProgress struct {
	ID          string // as the Engine names it
	Done, Total int64  // bytes, as transported; Total is 0 while it is not known
	Here, Ready bool   // all of its bytes are here; it is unpacked
}

// String returns it in words.
func (p ImageProgress) String() string {
	return fmt.Sprintf("%.1f of %.1f MB, %d of %d layers", float64(p.Done)/1e6, float64(p.Total)/1e6, p.Ready, p.Layers)
}

// Handle finds an instance again.
type Handle struct {
	ID   sandbox.ID
	Data []byte // the driver's own; may be empty, then the driver looks for ID
}

// Exit says why an instance went down.
type Exit struct {
	Cause  sandbox.Cause // stopped (Stop or Remove was called), oom, killed, host
	Detail string        // the evidence, for people
}

// Tracker is implemented by instances for which somebody can tell which files a command changed. Where the
// cost grows with the tree, it has a bound: a tree that is too large is answered at once, and not as complete.
type Tracker interface {
	// Track opens a window on the directory dir (absolute, inside). Several
	// windows at once are fine; each sees every change made while it is open.
	Track(ctx context.Context, dir string) (Window, error)
}

// Window collects changes until Close.
type Window interface {
	// Close ends the window and returns the net effect of all that was done before the call.
	// Calling it twice returns the same changes.
	Close(ctx context.Context) (sandbox.Changes, error)
}
