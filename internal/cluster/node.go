// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sandpit.dev/internal/programs"
)

// Added is a node beside a cluster's first. It has the same directory of volumes.
type Added struct {
	Machine
	Name    string
	Address string

	c      *Cluster
	subnet string
}

// NodeOptions configure a node.
type NodeOptions struct {
	Lease time.Duration // how long its lease is good for, which is renewed four times in that; 0: as clusters have it
}

// mostNodes bounds the numbers of nodes.
const mostNodes = 200

// AddNode starts another node, and waits until it is ready. The caller closes it.
func (c *Cluster) AddNode(ctx context.Context, o NodeOptions) (_ *Added, err error) {
	n := &Added{c: c, Machine: Machine{kit: c.kit}}
	if err := n.place(); err != nil {
		return nil, err
	}
	n.group = c.group + "-" + n.Name
	pki := filepath.Join(n.dir, "pki")
	a, err := lentTo(pki, filepath.Dir(c.Kubeconfig))
	if err == nil {
		err = errors.Join(a.kubelet(n.Name, n.Address), configure(n.dir, filepath.Dir(c.kit.Path("kubernetes")), n.subnet, cmp.Or(o.Lease, lease)))
	}
	if err == nil {
		err = n.begin(ctx, n.Name, n.Address, c.dir)
	}
	if err != nil {
		return nil, err
	}
	if err = n.connect(ctx); err == nil {
		err = n.wait(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.end())
	}
	return n, nil
}

// place gives the node a number that no other has, with a name, a directory and addresses.
func (n *Added) place() error {
	for number := 2; number <= mostNodes; number++ {
		n.Name = "node" + strconv.Itoa(number)
		n.dir = filepath.Join(n.c.dir, n.Name)
		switch err := os.Mkdir(n.dir, 0o700); {
		case err == nil:
			n.Address, n.subnet = fmt.Sprintf("10.250.0.%d", number+1), fmt.Sprintf("10.244.%d.0/24", number-1)
			return nil
		case !errors.Is(err, os.ErrExist):
			return err
		}
	}
	return fmt.Errorf("the cluster has %d nodes already", mostNodes)
}

// connect joins the node's network with the cluster's, by a bridge in the first node's.
func (n *Added) connect(ctx context.Context) error {
	const join = `set -e
ip link show br0 >/dev/null 2>&1 || { ip link add br0 type bridge && ip link set br0 up && ip link set eth0peer master br0; }
ip link del "$1" 2>/dev/null || : # of a node of this name that was closed, whose network goes a moment later
ip link add "$1" type veth peer name eth0 netns "$2"
ip link set "$1" master br0 up
ip route replace "$3" via "$4"`
	return programs.Said(n.c.kit.Command(ctx, "nsenter", "--net=/proc/"+strconv.Itoa(n.c.PID)+"/ns/net", "--", "bash", "-c", join, "join", n.Name, strconv.Itoa(n.PID), n.subnet, n.Address))
}

// Cut takes the node off the network: it runs on, and nobody hears of it.
func (n *Added) Cut(ctx context.Context) error { return n.link(ctx, "down") }

// Join connects it again.
func (n *Added) Join(ctx context.Context) error { return n.link(ctx, "up") }

func (n *Added) link(ctx context.Context, state string) error {
	return programs.Said(n.c.Command(ctx, "ip", "link", "set", n.Name, state))
}

// Die ends the node at once, as a loss of power does. The cluster is told nothing.
func (n *Added) Die() error { return n.end() }

// Close ends the node, and has the cluster forget it.
func (n *Added) Close(ctx context.Context) error {
	return errors.Join(n.end(), programs.Said(n.c.Kubectl(ctx, "delete", "node", n.Name, "--ignore-not-found")), os.RemoveAll(n.dir))
}
