// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"sandpit.dev/internal/programs"
)

// bwrap runs a command by bubblewrap, in all namespaces that it knows and in an overlay
// of its own over the image that sandpit's sandboxes share. Only the program is
// timed: the overlay is mounted before, as if an engine had it ready. It is less than
// sandpit does: no limits, no seccomp filter, nothing that outlives the command and
// so no further command, and no daemon that records.
type bwrap struct {
	parts   peerParts
	kit     programs.Kit
	version string
	thread  *programs.Private
	n       int
}

func openBwrap(ctx context.Context, parts peerParts) (_ Peer, err error) {
	k, err := parts.programs.Find(ctx, "bwrap", programs.DebianPackage("bubblewrap"))
	if err != nil {
		return nil, err
	}
	b := &bwrap{parts: parts, kit: k}
	if b.version, err = k.Version(ctx, "bwrap"); err != nil {
		return nil, err
	}
	if b.thread, err = programs.NewPrivate(); err != nil {
		return nil, err
	}
	if _, _, err := b.FirstCommand(ctx); err != nil { // does it work here at all
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *bwrap) Version() string { return b.version }

func (b *bwrap) Close() error {
	b.thread.Close()
	return nil
}

func (b *bwrap) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	b.n++
	dir := filepath.Join(b.parts.dir, strconv.Itoa(b.n))
	err = b.thread.Do(func() (err error) {
		defer func() { err = errors.Join(err, dropOverlay(dir)) }()
		if err := mountOverlay(b.parts.image.Root, dir); err != nil {
			return err
		}
		took, cpu, err = spent(ctx, b.parts.dir, func(ctx context.Context) *exec.Cmd {
			cmd := b.kit.Command(ctx, "bwrap", "--unshare-all", "--die-with-parent", "--hostname", "sandbox",
				"--unsetenv", "LD_LIBRARY_PATH", "--setenv", "PATH", "/usr/bin:/bin",
				"--bind", filepath.Join(dir, rootName), "/", "--dev", "/dev", "--proc", "/proc", "--chdir", "/", "/bin/true")
			return cmd
		})
		return err
	})
	return took, cpu, err
}
