// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime"
)

// abandoned reports whether the server of dir, a directory of the kind's, no longer needs the
// cgroups of a namespace, in which no process is: its data directory is gone or another
// installation's, or no server has it and it has no sandbox that was up. It is locked then until
// release.
func abandoned(k runtime.HostKind, namespace, dir string) (release func(), ok bool) {
	if filepath.Base(dir) != k.Name() {
		return nil, false
	}
	data := filepath.Dir(dir)
	if _, err := os.Lstat(data); err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	i, err := readIdentity(data)
	if err != nil || i == nil {
		return nil, false
	}
	if i.Namespace != namespace {
		return nil, true
	}
	lock, err := os.OpenFile(filepath.Join(data, lockFile), os.O_RDWR, 0)
	if err != nil {
		return nil, false
	}
	release = func() { _ = lock.Close() }
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return release, false
	}
	bare, err := k.Bare(runtime.Place{Dir: dir, Namespace: namespace})
	return release, err == nil && bare
}

func inspectAbandoned(ctx context.Context, k runtime.HostKind, mend bool) ([]runtime.Finding, error) {
	return k.InspectAbandoned(ctx, func(namespace, dir string) (func(), bool) { return abandoned(k, namespace, dir) }, mend)
}

// removeAbandoned removes the cgroups of servers that are gone.
func removeAbandoned(ctx context.Context, k runtime.HostKind, log *slog.Logger) {
	found, err := inspectAbandoned(ctx, k, true)
	report(log, "look for cgroups of servers that are gone", err)
	for _, f := range found {
		if f.Err != nil {
			log.Warn("the cgroups of a server that is gone cannot be removed", "cgroups", f.What, "error", f.Err)
			continue
		}
		log.Info("removed the cgroups of a server that is gone", "cgroups", f.What)
	}
}
