// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package clustertest gives tests a cluster. The tests of a package share one, which begins before them and ends behind
// them. They run in its network, where pods have addresses.
package clustertest

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/programs"
)

// Where a test's process finds its cluster, or why there is none.
const (
	variableDir = "SANDPIT_TEST_CLUSTER"
	variablePID = "SANDPIT_TEST_CLUSTER_PID"
	variableIn  = "SANDPIT_TEST_CLUSTER_GROUP"
	variableWhy = "SANDPIT_TEST_CLUSTER_WHY"
)

// Main runs the tests of a package in a cluster's network. It is what a TestMain calls, and returns what that exits with.
func Main(m *testing.M) int { return with(m, cluster.Options{}) }

// MainWithServices is Main, of a cluster whose services have addresses and names. There is Helm, too.
func MainWithServices(m *testing.M) int { return with(m, cluster.Options{Services: true}) }

// MainWithGVisor is Main, of a cluster that has pods on gVisor, too.
func MainWithGVisor(m *testing.M) int { return with(m, cluster.Options{GVisor: true}) }

func with(m *testing.M, o cluster.Options) int {
	if os.Getenv(variableDir) != "" || os.Getenv(variableWhy) != "" {
		return m.Run()
	}
	code, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the cluster:", err)
		return 1
	}
	return code
}

// run starts a cluster, and this program again in its network.
func run(o cluster.Options) (code int, err error) {
	if why := missing(); why != "" {
		return again(exec.Command(os.Args[0], os.Args[1:]...), variableWhy+"="+why)
	}
	dir, err := os.MkdirTemp("/var/tmp", "sandpit-cluster-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	finder := &programs.Finder{Cache: programs.UserCache(), Scratch: filepath.Join(dir, "fetched"), Fetch: true}
	if o.Services { // the tests' own network leads to no modules
		if _, err := cluster.FindHelm(context.Background(), finder); err != nil {
			return 0, err
		}
	}
	group := "sandpit-test-" + strings.ToLower(rand.Text())
	o.Dir, o.Group, o.Programs = dir, group, finder
	c, err := cluster.Start(context.Background(), o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	pid := strconv.Itoa(c.PID)
	cmd := exec.Command("nsenter", append([]string{"--net=/proc/" + pid + "/ns/net", "--", os.Args[0]}, os.Args[1:]...)...)
	return again(cmd, variableDir+"="+dir, variablePID+"="+pid, variableIn+"="+group)
}

// missing returns why there can be no cluster; "": there can.
func missing() string {
	flag.Parse()
	switch {
	case os.Geteuid() != 0:
		return "a cluster makes namespaces, which takes root"
	case testing.Short():
		return "-short"
	}
	for _, program := range []string{"go", "nsenter", "unshare", "ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			return "there is no " + program
		}
	}
	return ""
}

// again runs this program as a child, and returns what it exits with.
func again(cmd *exec.Cmd, env ...string) (int, error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, exit.ExitCode()), nil
	}
	return 0, err
}

// Get returns the cluster. It skips the test where there can be none.
func Get(t testing.TB) *cluster.Cluster {
	t.Helper()
	dir := os.Getenv(variableDir)
	if dir == "" {
		t.Skipf("no cluster: %s", os.Getenv(variableWhy))
	}
	pid, err := strconv.Atoi(os.Getenv(variablePID))
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Running(t.Context(), dir, pid, os.Getenv(variableIn), &programs.Finder{Cache: programs.UserCache()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Space makes a namespace, which goes with the test.
func Space(t testing.TB, c *cluster.Cluster) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text()[:10])
	if out, err := c.Kubectl(t.Context(), "create", "namespace", name).CombinedOutput(); err != nil {
		t.Fatalf("make a namespace: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := c.Kubectl(context.Background(), "delete", "namespace", name, "--wait=false").CombinedOutput(); err != nil {
			t.Errorf("delete a namespace: %v: %s", err, out)
		}
	})
	return name
}
