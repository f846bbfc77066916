// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// container is one of the Engine's own, without sandpit: its process only waits.
type container struct {
	engine *engine
	id     string
}

// containerLimits are what a container may use.
type containerLimits struct {
	cpus   float64
	memory int64 // bytes
	pids   int
}

// startContainer starts one of an image, without a network. One that was made and did not start is returned with an error.
func (e *engine) startContainer(ctx context.Context, image string, l containerLimits) (*container, error) {
	var made struct{ ID string }
	err := e.call(ctx, http.MethodPost, "/containers/create", map[string]any{
		"Image": image, "Cmd": []string{"sleep", "infinity"},
		"HostConfig": map[string]any{
			"NetworkMode": "none", "Memory": l.memory, "MemorySwap": l.memory, "NanoCpus": int64(l.cpus * 1e9), "PidsLimit": l.pids,
		},
	}, &made)
	if err != nil {
		return nil, err
	}
	return &container{e, made.ID}, e.call(ctx, http.MethodPost, "/containers/"+made.ID+"/start", nil, nil)
}

// usual are the limits that sandpit's sandboxes have by default.
func usual() containerLimits { return containerLimits{limitCPUs, limitMemory, limitPids} }

// do sends a request about the container.
func (c *container) do(ctx context.Context, verb string) error {
	return c.engine.call(ctx, http.MethodPost, "/containers/"+c.id+"/"+verb, nil, nil)
}

// remove ends it, also after an interrupt.
func (c *container) remove(ctx context.Context) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return c.engine.call(limit, http.MethodDelete, "/containers/"+c.id+"?force=1&v=1", nil, nil)
}

// exec runs a command, which has to end with 0, and returns what it wrote to standard output.
func (c *container) exec(ctx context.Context, user string, env []string, argv ...string) (string, error) {
	var made struct{ ID string }
	err := c.engine.call(ctx, http.MethodPost, "/containers/"+c.id+"/exec", map[string]any{
		"Cmd": argv, "AttachStdout": true, "AttachStderr": true, "User": user, "WorkingDir": "/workspace", "Env": env,
	}, &made)
	if err != nil {
		return "", err
	}
	start, err := json.Marshal(map[string]any{"Detach": false})
	if err != nil {
		return "", err
	}
	raw, err := c.engine.read(ctx, http.MethodPost, "/exec/"+made.ID+"/start", "application/json", bytes.NewReader(start))
	if err != nil {
		return "", err
	}
	stdout, stderr, err := apart(raw)
	if err != nil {
		return "", err
	}
	return stdout, c.engine.ended(ctx, made.ID, stderr)
}

// ended waits until a command has ended, which has to be with 0.
func (e *engine) ended(ctx context.Context, exec, said string) error {
	for {
		var end struct {
			Running  bool
			ExitCode *int
		}
		switch err := e.call(ctx, http.MethodGet, "/exec/"+exec+"/json", nil, &end); {
		case err != nil:
			return err
		case end.Running:
			continue // its output ended before it did
		case end.ExitCode == nil || *end.ExitCode != 0:
			return fmt.Errorf("the command ended with %s: %s", number(end.ExitCode), said)
		}
		return nil
	}
}

// apart takes the two outputs of a command out of the Engine's stream, in which each piece has a header of eight bytes: which of them it is
// of, three of nothing, and its length.
func apart(raw []byte) (stdout, stderr string, err error) {
	var out [3]bytes.Buffer
	for len(raw) > 0 {
		if len(raw) < 8 || raw[0] > 2 || int64(len(raw)-8) < int64(binary.BigEndian.Uint32(raw[4:])) {
			return "", "", fmt.Errorf("the Engine's stream of a command's output has no piece in %.60q", raw)
		}
		end := 8 + int(binary.BigEndian.Uint32(raw[4:]))
		out[raw[0]].Write(raw[8:end])
		raw = raw[end:]
	}
	return out[1].String(), out[2].String(), nil
}

// put writes a file into the workspace.
func (c *container) put(ctx context.Context, name string, content []byte) error {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), Uid: user, Gid: user})
	if err == nil {
		_, err = t.Write(content)
	}
	if err := errors.Join(err, t.Close()); err != nil {
		return err
	}
	return c.engine.send(ctx, http.MethodPut, "/containers/"+c.id+"/archive?path=/workspace", "application/x-tar", &b, nil)
}

// commit makes an image of its disk, and returns the image's id.
func (c *container) commit(ctx context.Context) (image string, err error) {
	var made struct{ ID string }
	err = c.engine.call(ctx, http.MethodPost, "/commit?"+url.Values{"container": {c.id}, "pause": {"1"}}.Encode(), map[string]any{}, &made)
	return made.ID, err
}

func (e *engine) removeImage(ctx context.Context, image string) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return e.call(limit, http.MethodDelete, "/images/"+image+"?force=1", nil, nil)
}

// timedOnce runs fn and says how long it took.
func timedOnce(fn func() error) (time.Duration, error) {
	began := time.Now()
	err := fn()
	return time.Since(began), err
}
