// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a Kubernetes cluster of one node beside the host's own things, with a registry of images at
// 127.0.0.1:5000 of its network, until it is interrupted: for trying out what tests do. With the argument gvisor it has pods on gVisor, too.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/programs"
)

func main() {
	run := keep
	if len(os.Args) > 1 && os.Args[1] == "registry" {
		run = serve
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// keep runs a cluster until ctx is done.
func keep(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("/var/tmp", "sandpit-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: dir, Group: "sandpit-test-" + strings.ToLower(rand.Text()), GVisor: slices.Contains(os.Args[1:], cluster.GVisorClass),
		Programs: &programs.Finder{Cache: programs.UserCache(), Scratch: filepath.Join(dir, "fetched"), Fetch: true},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	pid := strconv.Itoa(c.PID)
	images := exec.CommandContext(ctx, "nsenter", "--net=/proc/"+pid+"/ns/net", "--", os.Args[0], "registry")
	images.Stderr, images.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := images.Start(); err != nil {
		return err
	}
	fmt.Printf("kubeconfig: %s\nin its network: nsenter --net=/proc/%s/ns/net\non its node: nsenter --target %s --all\n", c.Kubeconfig, pid, pid)
	<-ctx.Done()
	_ = images.Wait() // it was killed
	return nil
}

// serve is the registry.
func serve(context.Context) error {
	s := &http.Server{Addr: "127.0.0.1:5000", Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	return s.ListenAndServe()
}
