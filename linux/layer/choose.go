// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Declined is a kind that would have been better and was not taken.
type Declined struct {
	Kind Kind
	Err  error // the reason, a [fault.Error] with its remedy where there is one
}

// Info describes a store, for Probe and `sandpit doctor`.
type Info struct {
	Kind Kind
	// DiskLimit is nil where the limits of layers are enforced, and else an
	// Unsupported error with the reason and the remedy.
	DiskLimit error
	// CheapSnapshots is nil where what a snapshot and a copy of it cost does not grow
	// with what is in them, and else an Unsupported error like DiskLimit.
	CheapSnapshots error
	// Declined says, best first, which kinds were passed over and why.
	Declined []Declined
	// Dir is the store's directory.
	Dir string
	// Device is the loop device of a loop store ("/dev/loop0"), and DirectIO
	// whether it goes around the page cache of the file system below.
	Device   string
	DirectIO bool
	// SizeBytes and FreeBytes are of the file system that holds the layers;
	// 0 where it does not answer.
	SizeBytes, FreeBytes int64
	// HostFreeBytes is what the file system of Dir has free. A loop store
	// whose FreeBytes is more than that can run dry before it is full.
	HostFreeBytes int64
}

// Info says what the store is and how full it is.
func (s *Store) Info() Info {
	s.mu.RLock()
	defer s.mu.RUnlock()
	info := Info{Kind: s.kind, DiskLimit: s.limitErr, Declined: s.declined, Dir: s.dir}
	if s.kind == Plain {
		info.CheapSnapshots = s.needsBtrfs("snapshots that are no copies need")
	}
	if s.loop != nil {
		info.Device, info.DirectIO = s.loop.device, s.loop.directIO
	}
	if s.top < 0 {
		return info
	}
	var st unix.Statfs_t
	if unix.Fstatfs(s.top, &st) == nil {
		info.SizeBytes, info.FreeBytes = int64(st.Blocks)*int64(st.Bsize), int64(st.Bavail)*int64(st.Bsize)
	}
	if unix.Statfs(s.dir, &st) == nil {
		info.HostFreeBytes = int64(st.Bavail) * int64(st.Bsize)
	}
	return info
}

// choose decides the store's kind, and mounts it if it is a loop file. What is
// there decides before what would be better.
func (s *Store) choose(ctx context.Context, dir *os.File, opts Options) error {
	onBtrfs, err := isBtrfs(int(dir.Fd()))
	if err != nil {
		return err
	}
	hasFile := unix.Faccessat(int(dir.Fd()), loopFile, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil
	hasLayers, err := holdsLayers(dir)
	if err != nil {
		return err
	}
	if hasFile && hasLayers {
		return fault.New(fault.State, "%s has both layers in directories and a store in %s; one of them would be hidden", opts.Dir, loopFile).
			WithRemedy("move the one away that is not yours")
	}
	kind := opts.Kind
	switch kind {
	case "":
		switch {
		case hasFile:
			kind = Loop
		case onBtrfs:
			kind = Btrfs
		case hasLayers:
			kind = Plain
			s.decline(Btrfs, notBtrfs(opts.Dir))
			s.decline(Loop, fault.New(fault.State, "the store has layers in plain directories already").
				WithRemedy("install btrfs-progs, delete all sandboxes, and start the server again"))
		}
	case Btrfs:
		if !onBtrfs {
			return notBtrfs(opts.Dir)
		}
	case Loop, Plain:
	default:
		return fault.InvalidField("kind", "%q is not a kind of store; use btrfs, loop or plain", kind)
	}
	if hasFile && kind != Loop || hasLayers && kind == Loop {
		return fault.New(fault.State, "the store in %s is of another kind than %q, and has data", opts.Dir, kind).
			WithRemedy("leave the kind open, or use another data directory")
	}
	if kind == Plain || kind == Btrfs {
		s.kind = kind
		return nil
	}
	loop, err := openLoop(ctx, dir, opts)
	if err == nil {
		s.kind, s.loop = Loop, loop
		if !onBtrfs {
			s.decline(Btrfs, notBtrfs(opts.Dir))
		}
		return nil
	}
	if kind == Loop || ctx.Err() != nil {
		return err
	}
	s.kind = Plain
	s.decline(Btrfs, notBtrfs(opts.Dir))
	s.decline(Loop, err)
	s.log.Warn("layers are kept in plain directories", "reason", err)
	return nil
}

func (s *Store) decline(kind Kind, err error) {
	s.declined = append(s.declined, Declined{Kind: kind, Err: err})
}

func notBtrfs(dir string) error {
	return fault.New(fault.Unsupported, "the data directory %s is not on btrfs", dir).
		WithRemedy("put the data directory on a btrfs file system")
}

// holdsLayers reports whether dir has layers, snapshots or volumes in directories.
func holdsLayers(dir *os.File) (bool, error) {
	for _, part := range []string{"layers", "volumes", "snapshots"} {
		if held, err := holdsEntries(int(dir.Fd()), part, part == "snapshots"); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// holdsEntries reports whether there is anything in the directory name, which may be
// missing, or in one of its directories where it has slots.
func holdsEntries(dir int, name string, slots bool) (bool, error) {
	fd, err := openDir(dir, name)
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	entries, err := names(fd)
	if err != nil || !slots {
		return len(entries) > 0, err
	}
	for _, slot := range entries {
		if held, err := holdsEntries(fd, slot, false); held || err != nil {
			return held, err
		}
	}
	return false, nil
}
