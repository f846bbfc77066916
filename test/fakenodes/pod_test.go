// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fakenodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/serve"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/view"
)

// pod is the agent that stands for a pod of a fake node.
type pod struct {
	name, uid string
	address   netip.Addr
	begun     chan struct{} // closed once begin has returned; what follows is set then
	log       string        // its first line

	door    *serve.Door
	running context.Context
	stop    context.CancelFunc
	served  sync.WaitGroup
}

// user is the id of commands.
const user = 1000

// begin has the agent of a pod serve, as the pod's arguments say, and returns the status of the pod.
func (p *pod) begin(ctx context.Context, dir string, of *corev1.Pod) (map[string]any, error) {
	defer close(p.begun)
	now := time.Now().UTC().Format(time.RFC3339)
	if of.Labels["sandpit.dev/probe"] != "" { // it ends at once, as where policies are kept to
		code := 0
		if of.Labels["sandpit.dev/server"] != "" {
			code = 3
		}
		return map[string]any{"phase": "Failed", "containerStatuses": []any{map[string]any{
			"name": of.Spec.Containers[0].Name, "image": of.Spec.Containers[0].Image, "imageID": "", "state": map[string]any{"terminated": map[string]any{"exitCode": code}},
		}}}, nil
	}
	var config struct {
		Server *handshake.Public `json:"server"`
	}
	args := of.Spec.Containers[0].Args
	if len(args) != 2 || args[0] != "serve" {
		return nil, errors.New("its agent has other arguments than those to serve")
	}
	if err := json.Unmarshal([]byte(args[1]), &config); err != nil {
		return nil, err
	}
	private, public, err := handshake.NewPair()
	if err != nil {
		return nil, err
	}
	key, err := private.AgreeAsAgent(*config.Server)
	if err != nil {
		return nil, err
	}
	log, err := p.disk(filepath.Join(dir, of.Name))
	if err != nil {
		return nil, err
	}
	p.log = public.Line()
	p.running, p.stop = context.WithCancel(ctx)
	p.door = serve.New(key)
	s := server.New(server.Options{
		User: view.Plain(view.Identity{Name: "sandbox", UID: user, GID: user, Home: "/home/sandbox", Credential: &syscall.Credential{Uid: user, Gid: user}}),
		Root: view.Plain(view.Identity{Name: "root", Home: "/root"}), Log: log, Dir: filepath.Join(dir, of.Name), Workspace: "/workspace", End: p.stop,
	})
	p.served.Go(func() {
		_ = s.Serve(p.running, p.door) // until the pod's end
		_ = errors.Join(s.Close(), log.Close())
	})
	return map[string]any{
		"phase": "Running", "podIP": p.address.String(), "podIPs": []any{map[string]any{"ip": p.address.String()}}, "startTime": now,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": now}},
		"containerStatuses": []any{map[string]any{
			"name": of.Spec.Containers[0].Name, "image": of.Spec.Containers[0].Image, "imageID": "", "ready": true, "started": true, "resources": of.Spec.Containers[0].Resources, "state": map[string]any{"running": map[string]any{"startedAt": now}},
		}},
	}, nil
}

// disk makes what stands for the pod's files, and returns the directory of logs.
func (p *pod) disk(dir string) (*os.File, error) {
	for _, name := range []string{"log", "workspace", "home/sandbox", "artifacts", "root", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
		if name != "log" {
			if err := os.Chown(filepath.Join(dir, name), user, user); err != nil {
				return nil, err
			}
		}
	}
	return os.Open(filepath.Join(dir, "log"))
}

// end ends the agent.
func (p *pod) end() {
	<-p.begun
	if p.stop != nil {
		p.stop()
		p.served.Wait()
	}
}
