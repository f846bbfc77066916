// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/internal/programs"
)

// OnDocker is a server whose sandboxes are containers, beside the Engine that it has them of.
type OnDocker struct {
	Start  *DockerStart  `json:"start"`
	Execs  *DockerExecs  `json:"execs"`
	Stream *DockerStream `json:"stream"`
	Disks  *DockerDisks  `json:"disks"`
	Gate   *DockerGate   `json:"gate"`
	Alive  *DockerAlive  `json:"alive"`
	Cycles *DockerCycles `json:"cycles"`
	Inside *DockerInside `json:"inside"`
}

// The sides of comparisons on an Engine.
const (
	Native   = "sandpit"               // sandpit's native runtime
	Sockets  = "sandpit_docker"        // sandpit on the Engine, agents reached by sockets
	Pooled   = "sandpit_docker_pool"   // the same with a pool
	Streamed = "sandpit_docker_stream" // the same, agents reached through the Engine
	Plain    = "docker"                // the Engine itself, by its API
)

// nouns are in the order in which they are told.
func (d *OnDocker) nouns() []noun {
	return []noun{d.Start, d.Execs, d.Stream, d.Disks, d.Gate, d.Alive, d.Cycles, d.Inside}
}

// enginePart is a part that needs an Engine. Where there is none it is missing, with the reason.
func enginePart(name string, run func(ctx context.Context, s *session, e *engine) error) part {
	return part{name, false, func(ctx context.Context, s *session) (err error) {
		e, err := s.openEngine(ctx)
		if err != nil {
			s.out.Missing[name] = err.Error()
			return ctx.Err()
		}
		defer func() { err = firstOf(err, s.engines.close()) }()
		return run(ctx, s, e)
	}}
}

// whole leaves out of the report what a part measured before it failed.
func whole[T any](r *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// openEngine returns the Engine that the peers use, started if it is not there.
func (s *session) openEngine(ctx context.Context) (*engine, error) {
	parts, err := s.peerParts(ctx, Plain)
	if err != nil {
		return nil, err
	}
	return s.engines.open(ctx, parts)
}

// peerParts makes the directory of a peer, and returns what it is made of.
func (s *session) peerParts(ctx context.Context, name string) (peerParts, error) {
	img, err := defaultImage(ctx, s.o.Images)
	if err != nil {
		return peerParts{}, err
	}
	if s.programs == nil {
		s.programs = &programs.Finder{Cache: programs.UserCache(), Scratch: filepath.Join(s.dir, "fetched"), Fetch: s.o.Fetch}
	}
	dir := filepath.Join(s.dir, name)
	return peerParts{
		dir: dir, program: s.o.Program, images: s.o.Images, image: img, group: filepath.Base(s.dir) + "-" + name, programs: s.programs, engine: &s.engines,
	}, os.MkdirAll(dir, 0o700)
}

// dockerServer is a server that has the docker runtime alone.
type dockerServer struct {
	*ours
	server *server
}

// startDockerServer starts one whose sandboxes are containers of the Engine, on a directory of that name. Agents are reached by
// sockets, or by streams through the Engine.
func (s *session) startDockerServer(ctx context.Context, e *engine, name string, prewarmed int, stream bool) (*dockerServer, error) {
	dir, err := s.place("on-" + name)
	if err != nil {
		return nil, err
	}
	d := &dockerServer{server: newServer(s.o.Program, dir, s.o.Images)}
	d.server.prewarmed = prewarmed
	d.server.env = []string{"SANDPIT_RUNTIMES=docker", "SANDPIT_DOCKER_HOST=unix://" + e.Socket}
	var settings strings.Builder
	if s.allow.IsValid() {
		settings.WriteString("network:\n  allow_private: [\"" + s.allow.String() + "\"]\n")
	}
	if stream {
		settings.WriteString("docker:\n  stream: true\n")
	}
	if settings.Len() > 0 {
		d.server.config = filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(d.server.config, []byte(settings.String()), 0o600); err != nil {
			return nil, err
		}
	}
	if err := d.server.start(ctx); err != nil {
		return nil, err
	}
	d.ours = &ours{client: d.server.client, pid: d.server.cmd.Process.Pid}
	if _, err := d.firstCommand(ctx, byArgv); err != nil { // the agent is brought to the Engine
		return nil, firstOf(err, d.close(ctx))
	}
	return d, nil
}

func (d *dockerServer) close(ctx context.Context) error {
	return d.server.close(context.WithoutCancel(ctx))
}
