// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/image"
	"sandpit.dev/internal/cluster"
)

// OnKubernetes is a server whose sandboxes are pods, beside pods of the cluster's own and its API's exec. The cluster is one of a single node, with the
// image present.
type OnKubernetes struct {
	Start  Compared `json:"create_first_command"`
	Exec   Compared `json:"exec"`
	Stop   *Figures `json:"stop"`
	Again  *Figures `json:"start"`
	Delete *Figures `json:"delete"`
	// Crowd is how long until the last of some creates in the same moment has the result of its first command, in milliseconds.
	Crowd  *Figures `json:"crowd"`
	Crowds int      `json:"crowd_of"`
}

// The sides of comparisons on a cluster.
const (
	BarePod       = "pod"                     // a pod of the API's, until a watch says that it runs
	ClaimedPod    = "pod_claim"               // the same with a claim
	ExecutedPod   = "pod_exec"                // the same, and a command by the API's exec
	Pods          = "sandpit_kubernetes"      // sandpit, agents reached at their pods' addresses
	PooledPods    = "sandpit_kubernetes_pool" // the same with a pool
	ForwardedPods = "sandpit_kubernetes_forward"
)

// clusterVariable has the kubeconfig of the cluster in whose network this program runs.
const clusterVariable = "SANDPIT_BENCH_CLUSTER"

const kubernetesCrowd = 20

// kubernetes measures on a cluster that it starts, by this program once more in the cluster's network.
func (s *session) kubernetes(ctx context.Context) (err error) {
	if kubeconfig := os.Getenv(clusterVariable); kubeconfig != "" {
		s.out.OnKubernetes, err = whole(s.onKubernetes(ctx, kubeconfig))
		return err
	}
	parts, err := s.peerParts(ctx, "kubernetes")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/var/tmp", "sandpit-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Group: parts.group, Programs: parts.programs})
	if err != nil {
		s.out.Missing["kubernetes"] = err.Error()
		return ctx.Err()
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	program, err := embedded.Program()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	if err := c.Import(ctx, localImages+"/agent:"+hex.EncodeToString(sum[:]), program, "sandpit-agent"); err != nil {
		return err
	}
	if err := c.Lend(ctx, imageReference(parts.image), parts.image.Root); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--net=/proc/"+strconv.Itoa(c.PID)+"/ns/net", "--", own,
		"--parts", "kubernetes", "--peers=", "--pairs", strconv.Itoa(s.o.pairs()), "--program", s.o.Program, "--images", s.o.Images, "--data", s.dir, "-o", "json")
	cmd.Env = append(os.Environ(), clusterVariable+"="+c.Kubeconfig)
	var said, report bytes.Buffer
	cmd.Stdout, cmd.Stderr = &report, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("in the cluster's network: %w: %s", err, lastLine(said.Bytes()))
	}
	var r Report
	if err := json.Unmarshal(report.Bytes(), &r); err != nil {
		return err
	}
	s.out.OnKubernetes = r.OnKubernetes
	s.out.Failures = append(s.out.Failures, r.Failures...)
	s.out.Versions["kubernetes"] = cluster.Version
	return nil
}

// localImages is what references begin with that nodes have already, see docs/kubernetes.md.
const localImages = "localhost/sandpit"

func imageReference(img image.Image) string {
	return localImages + "/image:" + strings.TrimPrefix(img.Digest, "sha256:")
}

func lastLine(b []byte) []byte {
	b = bytes.TrimSpace(b)
	return b[bytes.LastIndexByte(b, '\n')+1:]
}

// podServer starts a server that has the kubernetes runtime alone.
func (s *session) podServer(ctx context.Context, kubeconfig, name, reach string, prewarmed int) (*dockerServer, error) {
	dir, err := s.place("on-" + name)
	if err != nil {
		return nil, err
	}
	d := &dockerServer{server: newServer(s.o.Program, dir, s.o.Images)}
	d.server.prewarmed, d.server.config = prewarmed, filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("runtimes: [kubernetes]\nkubernetes:\n  kubeconfig: %s\n  namespace: default\n  reach: %s\n  overcommit: 100\n", kubeconfig, reach)
	if err := os.WriteFile(d.server.config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := d.server.start(ctx); err != nil {
		return nil, err
	}
	d.ours = &ours{client: d.server.client, pid: d.server.cmd.Process.Pid}
	if _, err := d.firstCommand(ctx, byArgv); err != nil {
		return nil, firstOf(err, d.close(ctx))
	}
	return d, nil
}

// onKubernetes measures in the cluster's network.
func (s *session) onKubernetes(ctx context.Context, kubeconfig string) (_ *OnKubernetes, err error) {
	img, err := defaultImage(ctx, s.o.Images)
	if err != nil {
		return nil, err
	}
	peer, err := newPodPeer(kubeconfig, imageReference(img))
	if err != nil {
		return nil, err
	}
	var servers [3]*dockerServer
	for at, o := range []struct {
		name, reach string
		pool        int
	}{{"pods", "pod", 0}, {"pool", "pod", dockerPool}, {"forward", "forward", 0}} {
		if servers[at], err = s.podServer(ctx, kubeconfig, o.name, o.reach, o.pool); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, servers[at].close(ctx)) }()
	}
	cold, pooled, forwarded := servers[0], servers[1], servers[2]
	if err := pooled.full(ctx); err != nil {
		return nil, err
	}
	r := &OnKubernetes{Crowds: kubernetesCrowd}
	n := max(2, s.o.pairs()/8)
	r.Start, err = s.turns(ctx, "create → first command on a cluster", n, 1, []turn{
		{BarePod, func(ctx context.Context) (time.Duration, error) { return peer.life(ctx, false, false) }},
		{ClaimedPod, func(ctx context.Context) (time.Duration, error) { return peer.life(ctx, true, false) }},
		{ExecutedPod, func(ctx context.Context) (time.Duration, error) { return peer.life(ctx, false, true) }},
		{Pods, func(ctx context.Context) (time.Duration, error) { return cold.firstCommand(ctx, byArgv) }},
		{PooledPods, func(ctx context.Context) (time.Duration, error) {
			took, err := pooled.firstCommand(ctx, byArgv)
			return took, errors.Join(err, pooled.full(ctx)) // the next side runs by itself
		}},
	})
	if err != nil {
		return nil, err
	}
	if err := s.podExecs(ctx, peer, cold, forwarded, r); err != nil {
		return nil, err
	}
	if err := s.podCycles(ctx, cold, n, r); err != nil {
		return nil, err
	}
	var crowd series
	for range 3 {
		times, last, err := cold.atOnce(ctx, kubernetesCrowd)
		crowd.add(last, errors.Join(err, times.failure))
	}
	r.Crowd = crowd.figures()
	return r, nil
}

// podExecs measures commands in pods that run.
func (s *session) podExecs(ctx context.Context, peer *podPeer, direct, forwarded *dockerServer, r *OnKubernetes) (err error) {
	pod := "bench-" + podName(rand.Text())
	if err := peer.start(ctx, pod, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.remove(context.WithoutCancel(ctx), podsURL+"/"+pod)) }()
	var ids [2]string
	for at, d := range []*dockerServer{direct, forwarded} {
		if ids[at], err = d.ready(ctx, byArgv); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.end(context.WithoutCancel(ctx), ids[at])) }()
	}
	r.Exec, err = s.turns(ctx, "command in a pod that runs", s.o.pairs(), warmUp, []turn{
		{ExecutedPod, func(ctx context.Context) (time.Duration, error) {
			return timedOnce(func() error { return peer.exec(ctx, pod, "/bin/true") })
		}},
		{Pods, func(ctx context.Context) (time.Duration, error) {
			return timedOnce(func() error { return direct.exec(ctx, ids[0], byArgv) })
		}},
		{ForwardedPods, func(ctx context.Context) (time.Duration, error) {
			return timedOnce(func() error { return forwarded.exec(ctx, ids[1], byArgv) })
		}},
	})
	return err
}

// podCycles measures stop, start and delete.
func (s *session) podCycles(ctx context.Context, d *dockerServer, n int, r *OnKubernetes) error {
	var stop, again, remove series
	for range n {
		id, err := d.ready(ctx, byArgv)
		if err != nil {
			return err
		}
		stop.add(timedOnce(func() error { _, err := d.client.Stop(ctx, id); return err }))
		again.add(timedOnce(func() error {
			_, err := d.client.Start(ctx, id)
			return errors.Join(err, d.exec(ctx, id, byArgv))
		}))
		remove.add(timedOnce(func() error { return d.client.Delete(ctx, id) }))
	}
	r.Stop, r.Again, r.Delete = stop.figures(), again.figures(), remove.figures()
	return nil
}

func (k *OnKubernetes) rows(row func(name string, f *Figures)) {
	if k == nil {
		return
	}
	k.Start.rows(row)
	k.Exec.rows(row)
	row("stop of a pod", k.Stop)
	row("start of a pod on its claim, and a command", k.Again)
	row("delete of a pod and its claim", k.Delete)
	row(fmt.Sprintf("the last of %d creates at once, with a command", k.Crowds), k.Crowd)
}

func (k *OnKubernetes) lines(say func(format string, args ...any)) {
	if k == nil {
		return
	}
	for _, c := range []Compared{k.Start, k.Exec} {
		for _, side := range c.Sides[1:] {
			say("%s: %s takes %v times as long as %s", c.What, side.Who, side.Ratio, c.Sides[0].Who)
		}
	}
}
