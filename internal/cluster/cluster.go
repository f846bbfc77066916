// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed" // of the script
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"sandpit.dev/internal/programs"
)

// Options configure a cluster.
type Options struct {
	Dir      string // holds all that it keeps; it exists, and is not below /run or /opt
	Group    string // name of the control groups below which its own are; nobody else's
	Programs *programs.Finder
	Services bool // its first node has kube-proxy and CoreDNS, so that services have addresses and names there
	GVisor   bool // its first node has pods of the runtime class [GVisorClass], too
}

// Cluster is one that runs. Its first node has all components.
type Cluster struct {
	Machine
	Kubeconfig string // path of an administrator's
}

// The first node's name, and its address in the cluster's own network.
const (
	Node    = "node1"
	Address = "10.250.0.2"
)

// readyTimeout bounds how long a cluster takes to be usable. On an idle host it takes five seconds.
const readyTimeout = 3 * time.Minute

// lease is how long that of a node is good for, as clusters have it.
const lease = 40 * time.Second

//go:embed node.sh
var script []byte

// Find finds the programs, or builds them.
func Find(ctx context.Context, p *programs.Finder) (programs.Kit, error) {
	parts, err := FindParts()
	if err != nil {
		return programs.Kit{}, err
	}
	return p.Find(ctx, "kubernetes", parts)
}

// FindHelm finds Helm, or builds it.
func FindHelm(ctx context.Context, p *programs.Finder) (programs.Kit, error) {
	return findOne(ctx, p, "helm")
}

func findOne(ctx context.Context, p *programs.Finder, name string) (programs.Kit, error) {
	parts, err := one(name)
	if err != nil {
		return programs.Kit{}, err
	}
	return p.Find(ctx, name, parts)
}

// Start starts a cluster, and waits until its node is ready. The caller closes it.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	kit, err := Find(ctx, o.Programs)
	if err != nil {
		return nil, err
	}
	var names string // the program of CoreDNS
	if o.Services {
		found, err := findOne(ctx, o.Programs, "coredns")
		if err != nil {
			return nil, err
		}
		names = found.Path("coredns")
	}
	c := newCluster(o.Dir, kit)
	c.group = o.Group
	if err := errors.Join(certify(filepath.Join(o.Dir, "pki")), configure(o.Dir, filepath.Dir(kit.Path("kubernetes")), "10.244.0.0/24", lease)); err != nil {
		return nil, err
	}
	if o.GVisor {
		if err := giveGVisor(ctx, o.Dir, o.Programs); err != nil {
			return nil, err
		}
	}
	if err := c.begin(ctx, Node, Address, o.Dir, names); err != nil {
		return nil, err
	}
	if err := c.wait(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func newCluster(dir string, kit programs.Kit) *Cluster {
	return &Cluster{Machine: Machine{dir: dir, kit: kit}, Kubeconfig: filepath.Join(dir, "pki", "admin.kubeconfig")}
}

// Kubectl returns a command of the administrator's.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return c.Command(ctx, c.kit.Path("kubernetes"), append([]string{"kubectl", "--kubeconfig", c.Kubeconfig}, args...)...)
}

// Close ends the cluster as a crash of its host does, and removes what is outside of its directory.
func (c *Cluster) Close() error { return c.end() }

// Running returns a cluster that another process started, and closes.
func Running(ctx context.Context, dir string, pid int, group string, p *programs.Finder) (*Cluster, error) {
	kit, err := Find(ctx, p)
	c := newCluster(dir, kit)
	c.PID, c.group = pid, group
	return c, err
}
