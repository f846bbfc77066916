// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"sandpit.dev/image"
	"sandpit.dev/internal/programs"
)

// Peer is what a user would pick instead of sandpit.
type Peer interface {
	// Version names what is measured.
	Version() string
	// FirstCommand runs one command, which does nothing, in a fresh sandbox, and
	// gives how long it took from the request to the result, and the processor
	// time that it cost, 0 where that is not known. What has to be there before, and
	// what has to be cleaned up afterwards, is not in the former.
	FirstCommand(ctx context.Context) (took, cpu time.Duration, err error)
	// Close ends all that the peer started.
	Close() error
}

// Keeper is a peer with sandboxes that stay for further commands.
type Keeper interface {
	Peer
	// Exec times the same command in a sandbox that runs already; the first call
	// starts it, untimed.
	Exec(ctx context.Context) (time.Duration, error)
}

// opener makes a peer ready. Its error says why it is not there.
type opener func(ctx context.Context, p peerParts) (Peer, error)

// peerParts is what peers are made of.
type peerParts struct {
	dir      string      // theirs, and there
	program  string      // sandpit's
	images   string      // directory of sandpit's images; "": the usual one
	image    image.Image // never written to
	group    string      // name of the cgroup below which theirs are
	programs *programs.Finder
	engine   *engineShare
}

// The limits of a sandbox that asks for none. Peers get them, too.
const (
	limitMemory = 512 << 20 // bytes, with no swap beyond
	limitCPUs   = 1
	limitPids   = 256
)

// openers is the list of peers: a new one is a line here.
var openers = map[string]opener{
	"bwrap": openBwrap, "crun": openCrun, "docker": openDocker, "docker_cli": openDockerCLI,
	"host": openHost, "runc": openRunc, "runsc": openRunsc, "sandpit_docker": openSandpitDocker,
}

// peer is one that is there.
type peer struct {
	name string
	Peer
}

// openPeers makes those ready that were asked for; the report tells why others are not
// there.
func (s *session) openPeers(ctx context.Context) {
	for _, name := range Peers() {
		if s.o.Peers != nil && !slices.Contains(s.o.Peers, name) {
			s.out.Missing[name] = "not asked for: see --peers"
			continue
		}
		s.tell("make " + name + " ready")
		parts, err := s.peerParts(ctx, name)
		if err != nil {
			s.out.Missing[name] = err.Error()
			continue
		}
		p, err := openPeer(ctx, name, parts)
		if err != nil {
			s.out.Missing[name] = err.Error()
			continue
		}
		s.peers = append(s.peers, peer{name, p})
		s.out.Versions[name] = p.Version()
	}
}

func openPeer(ctx context.Context, name string, parts peerParts) (Peer, error) {
	if err := os.MkdirAll(parts.dir, 0o700); err != nil {
		return nil, err
	}
	return openers[name](ctx, parts)
}

func (s *session) closePeers() error {
	var errs []error
	for _, p := range s.peers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// defaultImage finds the one that sandboxes which ask for none run on.
func defaultImage(ctx context.Context, dir string) (image.Image, error) {
	images, err := image.Open(image.Options{Dir: dir})
	if err != nil {
		return image.Image{}, err
	}
	img, err := images.Find(ctx, "")
	return img, errors.Join(err, images.Close())
}

// spent runs a command that is measured, and gives what it took. It is not ended with
// ctx: a sandbox that is half made is harder to clean up than one that ends by itself.
func spent(ctx context.Context, dir string, command func(ctx context.Context) *exec.Cmd) (took, cpu time.Duration, err error) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	cmd := command(limit)
	// Words go to a file: what a runtime leaves running keeps them open, and a pipe
	// would be read for as long.
	said, err := os.CreateTemp(dir, "said-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, said.Close(), os.Remove(said.Name())) }()
	cmd.Stdout, cmd.Stderr = said, said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		words := make([]byte, 2048)
		n, _ := said.ReadAt(words, 0) // it is a remark on another error
		return 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(words[:n]))
	}
	took = time.Since(began)
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
