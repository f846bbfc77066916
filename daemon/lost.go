// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// loser is a driver that may be asked by a server whose data is lost when it ends, while the driver's sandboxes go on.
type loser interface {
	runtime.Driver
	LosesDirectory(ctx context.Context, dir string) (bool, error)
}

// orphans are the drivers whose sandboxes would be nobody's after the end of this server.
type orphans []runtime.Driver

const (
	// removalBound is how long removing all takes at most: who stops a container waits ten seconds.
	removalBound  = 8 * time.Second
	removedAtOnce = 8
)

// orphansOf asks the drivers. One that cannot tell now is taken for one whose sandboxes stay.
func orphansOf(ctx context.Context, drivers map[string]runtime.Driver, data string, log *slog.Logger) (out orphans) {
	for name, d := range drivers {
		l, ok := d.(loser)
		if !ok {
			continue
		}
		lost, err := l.LosesDirectory(ctx, data)
		if err != nil {
			log.Warn("whether the server's data outlives it cannot be seen; its sandboxes will", "runtime", name, "error", err)
			continue
		}
		if lost {
			log.Warn("the server's data is removed with its container: its sandboxes are deleted when it ends", "runtime", name, "data", data,
				"remedy", "mount a volume there: docker run -v sandpit:"+data)
			out = append(out, d)
		}
	}
	return out
}

// remove removes all sandboxes of the drivers, with what they keep beside.
func (o orphans) remove(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalBound)
	defer cancel()
	for _, d := range o {
		report(log, "remove the sandboxes of a server whose data is lost", removeAllOf(ctx, d))
	}
}

func removeAllOf(ctx context.Context, d runtime.Driver) error {
	list, err := d.List(ctx)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(removedAtOnce)
	for _, h := range list {
		group.Go(func() error {
			i, err := d.Open(ctx, h)
			if err == nil {
				err = i.Remove(ctx)
			}
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
	}
	err = group.Wait()
	if s, ok := d.(runtime.Snapshotter); ok {
		err = errors.Join(err, removeEach(ctx, s.Snapshots, s.RemoveSnapshot))
	}
	if v, ok := d.(runtime.Volumer); ok {
		err = errors.Join(err, removeEach(ctx, v.Volumes, v.RemoveVolume))
	}
	return err
}

func removeEach(ctx context.Context, list func(context.Context) ([]sandbox.ID, error), remove func(context.Context, sandbox.ID) error) error {
	all, err := list(ctx)
	for _, id := range all {
		err = errors.Join(err, remove(ctx, id))
	}
	return err
}
