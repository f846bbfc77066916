// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// sandpitDocker is a server of sandpit's whose sandboxes are containers of the Engine that the peer
// docker uses: what sandpit adds there and what it saves. It is timed as sandpit is.
type sandpitDocker struct {
	engine *engine
	share  *engineShare
	server *server
	kept   string // id of the sandbox that stays; "": there is none yet
}

func openSandpitDocker(ctx context.Context, parts peerParts) (_ Peer, err error) {
	e, err := parts.engine.open(ctx, parts)
	if err != nil {
		return nil, err
	}
	d := &sandpitDocker{engine: e, share: parts.engine, server: newServer(parts.program, parts.dir, parts.images)}
	d.server.env = []string{"SANDPIT_DOCKER_HOST=unix://" + e.Socket}
	if err := d.server.start(ctx); err != nil {
		return nil, errors.Join(err, d.share.close())
	}
	if _, _, err := d.FirstCommand(ctx); err != nil { // does it work here at all
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *sandpitDocker) Version() string { return "this build, on " + d.engine.version }

func (d *sandpitDocker) Close() error {
	return errors.Join(d.server.close(context.Background()), d.share.close())
}

// FirstCommand is of one request. Deleting the sandbox is not timed.
func (d *sandpitDocker) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	pid := d.server.cmd.Process.Pid
	before, err := leaktest.CPU(pid)
	if err != nil {
		return 0, 0, err
	}
	cpu, err = d.engine.metered(func() error {
		began := time.Now()
		r, err := d.server.client.CreateExec(ctx, v1.CreateExec{Sandbox: v1.CreateSandbox{Runtime: new(dockerRuntime)}, Exec: byArgv})
		took = time.Since(began)
		if err != nil {
			return err
		}
		return errors.Join(ended(&r.ExecOutcome), d.server.client.Delete(ctx, r.SandboxID))
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := leaktest.CPU(pid)
	return took, cpu + after - before, err
}

const dockerRuntime = "docker"

func (d *sandpitDocker) Exec(ctx context.Context) (time.Duration, error) {
	if d.kept == "" {
		box, _, err := d.server.client.Create(ctx, v1.CreateSandbox{Runtime: new(dockerRuntime)})
		if err != nil {
			return 0, err
		}
		d.kept = box.ID
	}
	began := time.Now()
	r, err := d.server.client.Exec(ctx, d.kept, byArgv)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, ended(&r.ExecOutcome)
}
