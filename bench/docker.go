// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// docker uses Docker's Engine as a program does that wants a sandbox which stays: by
// the HTTP API on the Engine's socket. Timed to the first command are five requests,
// one after the other: create a container whose own process only waits, start it, create
// an exec of /bin/true, start that and read what it says to its end, and ask how it ended.
// A further command is the last three. Removing the container is not timed.
//
// Containers have no network and sandpit's default limits; Docker's own defaults, its
// seccomp profile among them, are left as they are. It is less than sandpit does: no
// authentication, no user namespace, and no record of commands.
type docker struct {
	engine *engine
	share  *engineShare
	kept   string // id of the container that stays; "": there is none yet
}

func openDocker(ctx context.Context, parts peerParts) (Peer, error) {
	e, err := parts.engine.open(ctx, parts)
	if err != nil {
		return nil, err
	}
	d := &docker{engine: e, share: parts.engine}
	if _, _, err := d.FirstCommand(ctx); err != nil { // does it work here at all
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *docker) Version() string { return d.engine.version }

// Close needs not remove the container: nothing outlives the engine.
func (d *docker) Close() error { return d.share.close() }

func (d *docker) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	cpu, err = d.engine.metered(func() (err error) {
		began := time.Now()
		id, err := d.start(ctx)
		if id != "" {
			defer func() { err = errors.Join(err, d.remove(ctx, id)) }()
		}
		if err == nil {
			err = d.run(ctx, id)
		}
		took = time.Since(began)
		return err
	})
	return took, cpu, err
}

func (d *docker) Exec(ctx context.Context) (time.Duration, error) {
	if d.kept == "" {
		id, err := d.start(ctx)
		if err != nil {
			return 0, err
		}
		d.kept = id
	}
	began := time.Now()
	err := d.run(ctx, d.kept)
	return time.Since(began), err
}

// start returns a container that waits; one that was made and did not start has an
// id and an error.
func (d *docker) start(ctx context.Context) (id string, err error) {
	c, err := d.engine.startContainer(ctx, engineImage, usual())
	if c == nil {
		return "", err
	}
	return c.id, err
}

func (d *docker) run(ctx context.Context, id string) error {
	var made struct{ ID string }
	err := d.engine.call(ctx, http.MethodPost, "/containers/"+id+"/exec", map[string]any{
		"Cmd": []string{"/bin/true"}, "AttachStdout": true, "AttachStderr": true,
	}, &made)
	if err != nil {
		return err
	}
	if err := d.engine.call(ctx, http.MethodPost, "/exec/"+made.ID+"/start", map[string]any{"Detach": false}, nil); err != nil {
		return err
	}
	return d.engine.ended(ctx, made.ID, "")
}

// remove ends a container, also after an interrupt.
func (d *docker) remove(ctx context.Context, id string) error {
	return (&container{d.engine, id}).remove(ctx)
}
