// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Mountable says whether the host's disk has room for a failed store to be mounted anew: it
// would soon fail again without.
func (s *Store) Mountable() bool {
	var host unix.Statfs_t
	if unix.Statfs(s.dir, &host) != nil {
		return false
	}
	return int64(host.Bavail)*int64(host.Bsize) >= hostReserve(int64(host.Blocks)*int64(host.Bsize))
}

// Remount closes a store that failed and mounts it anew; see Failed. The caller has ended
// all that uses it: file systems that are mounted on it, and Layers. What was written and not
// yet on the disk is lost, as after a crash of the host. After an error the store is as failed as
// before, and Remount can be called again. Errors: State where it has not failed, Unavailable
// while somebody uses it.
func (s *Store) Remount(ctx context.Context) error {
	if s.Space().Failed == nil {
		return fault.New(fault.State, "the store has not failed")
	}
	if err := s.letGo(); err != nil {
		return err
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return failed(err, "the store's directory %s cannot be opened", s.dir)
	}
	defer dir.Close()
	if err := lock(ctx, int(dir.Fd())); err != nil {
		return err
	}
	file, err := openRegular(dir, loopFile)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be opened (%s)", filepath.Join(s.dir, loopFile), err)
	}
	loop, err := awaitStore(ctx, file, filepath.Join(s.dir, loopFile), s.opts)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		loop.Close()
		return fault.New(fault.Unavailable, "the store of layers is closed")
	}
	s.loop, s.backed = loop, 0
	s.space.Store(nil) // it is another file system from here on
	if err := s.lay(dir); err != nil {
		s.closeFiles()
		s.space.Store(&Space{Failed: failedStore()})
		return err
	}
	s.trash.kick()
	s.log.Info("the store is mounted anew", "device", s.loop.device)
	return nil
}

// letGo closes what is open in a store that failed; nothing enters it meanwhile.
func (s *Store) letGo() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.trash == nil {
		return nil
	}
	s.syncing.Wait()
	s.committing.wait()
	s.trash.deletion.wait()
	s.trash.cleaning.Wait()
	s.closeFiles()
	if s.opts.Detach == nil {
		return nil
	}
	if err := s.opts.Detach(); err != nil {
		return failed(err, "the failed store cannot be detached")
	}
	return nil
}
