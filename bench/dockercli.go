// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/internal/programs"
)

// dockerCLI uses the same Engine as [docker] does, by the program `docker` as a person or
// a script does. Timed to the first command is `docker run --rm`, which ends when the
// container is removed; a further command is `docker exec`. No network, and sandpit's
// default limits, here too. The processor time has that of the program in it.
type dockerCLI struct {
	parts   peerParts
	kit     programs.Kit
	engine  *engine
	version string
	kept    bool // the container that stays is there
}

const keptContainer = "kept"

func openDockerCLI(ctx context.Context, parts peerParts) (Peer, error) {
	k, err := parts.programs.Find(ctx, "docker", programs.DebianPackage("docker.io"))
	if err != nil {
		return nil, err
	}
	d := &dockerCLI{parts: parts, kit: k}
	if d.version, err = k.Version(ctx, "docker"); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(d.version, "Docker version ") {
		return nil, fmt.Errorf("the program docker is something else: %s", d.version)
	}
	if d.engine, err = parts.engine.open(ctx, parts); err != nil {
		return nil, err
	}
	if _, _, err := d.FirstCommand(ctx); err != nil { // does it work here at all
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *dockerCLI) Version() string { return d.version + ", " + d.engine.version }

func (d *dockerCLI) Close() error { return d.parts.engine.close() }

func (d *dockerCLI) FirstCommand(ctx context.Context) (took, cpu time.Duration, err error) {
	var client time.Duration
	cpu, err = d.engine.metered(func() (err error) {
		took, client, err = d.do(ctx, append([]string{"run", "--rm"}, d.limits("/bin/true")...)...)
		return err
	})
	return took, cpu + client, err
}

func (d *dockerCLI) Exec(ctx context.Context) (time.Duration, error) {
	if !d.kept {
		if _, _, err := d.do(ctx, append([]string{"run", "--detach", "--name", keptContainer}, d.limits("sleep", "infinity")...)...); err != nil {
			return 0, err
		}
		d.kept = true
	}
	took, _, err := d.do(ctx, "exec", keptContainer, "/bin/true")
	return took, err
}

func (d *dockerCLI) limits(argv ...string) []string {
	memory := strconv.Itoa(limitMemory)
	return append([]string{
		"--network", "none", "--memory", memory, "--memory-swap", memory,
		"--cpus", strconv.Itoa(limitCPUs), "--pids-limit", strconv.Itoa(limitPids), engineImage,
	}, argv...)
}

func (d *dockerCLI) do(ctx context.Context, args ...string) (took, cpu time.Duration, err error) {
	return spent(ctx, d.parts.dir, func(ctx context.Context) *exec.Cmd {
		cmd := d.kit.Command(ctx, "docker", args...)
		cmd.Env = append(cmd.Env, "DOCKER_HOST=unix://"+d.engine.Socket, "DOCKER_CONFIG="+d.parts.dir, "DOCKER_CONTEXT=", "DOCKER_TLS_VERIFY=")
		return cmd
	})
}
